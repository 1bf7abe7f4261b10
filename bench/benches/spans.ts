import {
  chatAttributes,
  encode,
  otlpAttributes,
  spansRequest,
} from '../../server/test/support/otlp.ts';
import type { OtlpSpan } from '../../server/test/support/otlp.ts';
import type { Bench } from '../lab/bench.ts';
import { smallPayloads, traceBodies } from '../lab/bodies.ts';
import { fire, freshId, writeRequests } from '../lab/load.ts';
import { startService } from '../lab/processes.ts';
import { inTurns } from '../lab/rounds.ts';
import { medianRatio, perSecond } from '../lab/statistics.ts';

const spansOfBatch = 100;
const connections = 8;
/** V8 is still compiling after ten seconds. */
const warmUpFactor = 5;
const roundsFactor = 2;

export const spans: Bench = {
  name: 'spans',
  asks: 'POST /v1/traces with 100 spans of model calls as protobuf, compared with the same calls and fields in POST /traces/batch',
  async run(lab) {
    const { rounds, seconds, warmUpSeconds } = lab.plan;
    const database = await lab.emptyDatabase('spans');
    const service = await startService(database.url);
    const bodies = traceBodies(20 * spansOfBatch, smallPayloads);
    const parts = Array.from({ length: 20 }, (_, i) =>
      bodies.slice(i * spansOfBatch, (i + 1) * spansOfBatch),
    );
    const { key } = database;
    const spanRequests = writeRequests(
      lab.file('spans.requests'),
      parts.map((part) => ({
        method: 'POST',
        path: '/v1/traces',
        key,
        body: encode('protobuf', spansRequest(part.map(spanOf))),
      })),
    );
    const batches = writeRequests(
      lab.file('span-batches.requests'),
      parts.map((part) => ({
        method: 'POST',
        path: '/traces/batch?omit=input,output',
        key,
        body: JSON.stringify({ traces: part.map(sameCall) }),
      })),
    );
    const asSpans = () => fire(service.url, spanRequests, { connections, seconds });
    const asBatch = () => fire(service.url, batches, { connections, seconds });
    for (const requests of [spanRequests, batches]) {
      await fire(service.url, requests, { connections, seconds: warmUpFactor * warmUpSeconds });
    }
    const loads = await inTurns(roundsFactor * rounds, { asBatch, asSpans }, { bothOrders: true });
    await service.stop();
    const spanRates = loads.asSpans.map((load) => load.perSecond * spansOfBatch);
    const batchRates = loads.asBatch.map((load) => load.perSecond * spansOfBatch);
    return [
      {
        bench: 'spans',
        what: 'spans per second',
        value: medianRatio(spanRates, batchRates),
        unit: '× POST /traces/batch',
        goal: { atLeast: 0.7 },
        detail: `${perSecond(spanRates)}; batch ${perSecond(batchRates)}`,
      },
    ];
  },
};

interface TraceBody {
  model: string;
  input: string;
  output: string;
  prompt_tokens: number;
  completion_tokens: number;
  latency_ms: number;
  user_identifier: string;
}

const startMs = Date.now() - 60_000;
const provider = 'openai';

function responseModel({ model }: TraceBody): string {
  return `${model}-2026-08-01`;
}

/** Sixteen bytes. Ten runs of ten calls are in each request. */
function runIdOf(index: number): string {
  return `${freshId}-run-${String(index % 10).padStart(5, '0')}`;
}

/** The fields that a span has, too, so that both store the same. */
function sameCall(body: string, index: number): object {
  const trace = JSON.parse(body) as TraceBody;
  return {
    ...trace,
    provider,
    response_model: responseModel(trace),
    started_at: new Date(startMs).toISOString(),
    // As long as the id of an OpenTelemetry trace, and as new.
    run_id: runIdOf(index).padEnd(32, '-'),
  };
}

/** The call as the official instrumentations report it. Ten calls share the span of an agent, which is not in the request. */
function spanOf(body: string, index: number): OtlpSpan {
  const trace = JSON.parse(body) as TraceBody;
  const message = (role: string, content: string): string =>
    JSON.stringify([{ role, parts: [{ type: 'text', content }] }]);
  return {
    traceId: Buffer.from(runIdOf(index)).toString('hex'),
    spanId: Buffer.from(`${freshId}${String(index).padStart(2, '0')}`).toString('hex'),
    parentSpanId: Buffer.from(`${freshId}p${Math.floor(index / 10)}`).toString('hex'),
    name: `chat ${trace.model}`,
    startTimeUnixNano: `${startMs}000000`,
    endTimeUnixNano: `${startMs + trace.latency_ms}000000`,
    attributes: otlpAttributes({
      ...chatAttributes(),
      'gen_ai.request.model': trace.model,
      'server.address': 'api.openai.com',
      'server.port': 443,
      'gen_ai.request.temperature': 0.7,
      'gen_ai.response.finish_reasons': ['stop'],
      'gen_ai.provider.name': provider,
      'gen_ai.response.model': responseModel(trace),
      'gen_ai.response.id': `chatcmpl-${freshId}-${String(index).padStart(20, '0')}`,
      'gen_ai.usage.input_tokens': trace.prompt_tokens,
      'gen_ai.usage.output_tokens': trace.completion_tokens,
      'gen_ai.input.messages': message('user', trace.input),
      'gen_ai.output.messages': message('assistant', trace.output),
      'user.id': trace.user_identifier,
    }),
    status: { code: 1 },
  };
}
