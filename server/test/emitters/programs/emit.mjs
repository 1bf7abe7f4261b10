/** Calls the fake providers with one emitter, which exports to OTEL_EXPORTER_OTLP_ENDPOINT. Usage: node emit.mjs EMITTER */
import { createRequire } from 'node:module';
import { NodeSDK } from '@opentelemetry/sdk-node';
import { OTLPTraceExporter as JsonExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { OTLPTraceExporter as ProtobufExporter } from '@opentelemetry/exporter-trace-otlp-proto';

const require = createRequire(import.meta.url);
const emitter = process.argv[2] ?? '';
const instrumentations = await instrumentationsOf(emitter);
const sdk = new NodeSDK({
  traceExporter: emitter.includes('openinference') ? new JsonExporter() : new ProtobufExporter(),
  instrumentations,
});
sdk.start();

async function instrumentationsOf(name) {
  switch (name) {
    case 'official-openai-js': {
      const { OpenAIInstrumentation } = await import('@opentelemetry/instrumentation-openai');
      return [new OpenAIInstrumentation({ captureMessageContent: true })];
    }
    case 'openinference-openai-js': {
      const { OpenAIInstrumentation } =
        await import('@arizeai/openinference-instrumentation-openai');
      return [
        manually(new OpenAIInstrumentation(), require('openai').default ?? require('openai')),
      ];
    }
    case 'openinference-anthropic-js': {
      const { AnthropicInstrumentation } =
        await import('@arizeai/openinference-instrumentation-anthropic');
      return [manually(new AnthropicInstrumentation(), require('@anthropic-ai/sdk').Anthropic)];
    }
    case 'openllmetry-openai-js': {
      const { OpenAIInstrumentation } = await import('@traceloop/instrumentation-openai');
      return [manually(new OpenAIInstrumentation(), require('openai').OpenAI)];
    }
    case 'openllmetry-anthropic-js': {
      const { AnthropicInstrumentation } = await import('@traceloop/instrumentation-anthropic');
      return [manually(new AnthropicInstrumentation(), require('@anthropic-ai/sdk'))];
    }
    default:
      return [];
  }
}

function manually(instrumentation, module) {
  instrumentation.manuallyInstrument(module);
  return instrumentation;
}

const weather = {
  name: 'weather',
  description: 'The weather of a city.',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
};

const ask = (content) => [
  { role: 'system', content: 'Be brief.' },
  { role: 'user', content },
];

async function callOpenAI() {
  const { OpenAI } = require('openai');
  const client = new OpenAI({ maxRetries: 0 });
  const create = (text, more = {}) =>
    client.chat.completions.create({ model: 'gpt-4o-mini', messages: ask(text), ...more });
  await create('plain question');
  const stream = await create('streamed question', {
    stream: true,
    stream_options: { include_usage: true },
  });
  for await (const _ of stream);
  await create('fail please').catch(() => {});
  await create('weather in Paris?', { tools: [{ type: 'function', function: weather }] });
  await create('cached question', { model: 'gpt-4o' });
  await client.embeddings.create({
    model: 'text-embedding-3-small',
    input: 'embed this',
    encoding_format: 'float',
  });
}

async function callAnthropic() {
  const { Anthropic } = require('@anthropic-ai/sdk');
  const client = new Anthropic({ maxRetries: 0 });
  const create = (content, more = {}) =>
    client.messages.create({
      model: 'claude-sonnet-5',
      max_tokens: 100,
      system: 'Be brief.',
      messages: [{ role: 'user', content }],
      ...more,
    });
  await create('plain question');
  const stream = await create('streamed question', { stream: true });
  // oxlint-disable-next-line typescript/await-thenable
  for await (const _ of stream);
  await create('fail please').catch(() => {});
  const tool = { name: 'weather', description: 'The weather.', input_schema: weather.parameters };
  await create('weather in Paris?', { tools: [tool] });
  await create('cached question');
}

async function callAiSdk() {
  const { generateText, streamText, embed, tool, isStepCount, stepCountIs, jsonSchema, ...ai } =
    await import('ai');
  const { createOpenAI } = await import('@ai-sdk/openai');
  const { createAnthropic } = await import('@ai-sdk/anthropic');
  const openai = createOpenAI({ baseURL: process.env.OPENAI_BASE_URL });
  const anthropic = createAnthropic({ baseURL: `${process.env.ANTHROPIC_BASE_URL}/v1` });
  if (emitter === 'ai-sdk') {
    const { OpenTelemetry } = await import('@ai-sdk/otel');
    ai.registerTelemetry(new OpenTelemetry());
  }
  const settings = {
    isEnabled: true,
    functionId: 'helper',
    metadata: { userId: 'user-3', sessionId: 'session-3' },
  };
  const stop = (isStepCount ?? stepCountIs)(3);
  const tools = {
    weather: tool({
      description: 'The weather of a city.',
      inputSchema: jsonSchema(weather.parameters),
      execute: async ({ city }) => `Sunny in ${city}`,
    }),
  };
  for (const model of [openai.chat('gpt-4o-mini'), anthropic('claude-sonnet-5')]) {
    const common = {
      model,
      [emitter === 'ai-sdk' ? 'instructions' : 'system']: 'Be brief.',
      maxRetries: 0,
      experimental_telemetry: settings,
      telemetry: settings,
    };
    await generateText({ ...common, prompt: 'plain question' });
    const { textStream } = streamText({ ...common, prompt: 'streamed question' });
    for await (const _ of textStream);
    await generateText({ ...common, prompt: 'fail please' }).catch(() => {});
    await generateText({ ...common, tools, stopWhen: stop, prompt: 'weather in Paris?' });
    await generateText({ ...common, prompt: 'cached question' });
  }
  await embed({
    model: (openai.embeddingModel ?? openai.textEmbeddingModel)('text-embedding-3-small'),
    value: 'embed this',
    experimental_telemetry: settings,
    telemetry: settings,
  });
}

if (emitter.startsWith('ai-sdk')) await callAiSdk();
else if (emitter.includes('anthropic')) await callAnthropic();
else await callOpenAI();
await sdk.shutdown();
