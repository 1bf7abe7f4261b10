/** Reports a call of the Vercel AI SDK. */
import { createOpenAI } from '@ai-sdk/openai';
import { OpenTelemetry } from '@ai-sdk/otel';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { NodeSDK } from '@opentelemetry/sdk-node';
import { generateText, registerTelemetry } from 'ai';

const sdk = new NodeSDK({ traceExporter: new OTLPTraceExporter() });
sdk.start();
registerTelemetry(new OpenTelemetry());

const openai = createOpenAI({ baseURL: process.env['OPENAI_BASE_URL'] });
const { text } = await generateText({ model: openai.chat('gpt-4o-mini'), prompt: 'Say hello.' });
process.stdout.write(`${text}\n`);
await sdk.shutdown();
