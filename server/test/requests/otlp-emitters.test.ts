import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import type { ProviderCall } from '../emitters/fake-providers.ts';
import type { Fixture } from '../emitters/fixture.ts';
import { startTestService } from '../support/service.ts';
import type { Answer, KeyHolder, TestService } from '../support/service.ts';

/** What real emitters exported, as `emitters/record.ts` recorded it, is replayed and compared with what the fake providers saw. */
const folder = new URL('../emitters/fixtures/', import.meta.url);
const fixtures = new Map(
  globSync('*.json', { cwd: folder }).map((name) => {
    const fixture = JSON.parse(readFileSync(new URL(name, folder), 'utf8')) as Fixture;
    return [fixture.emitter, fixture];
  }),
);

type Part =
  | 'failed calls'
  | 'embeddings'
  | 'tokens of streams'
  | 'tokens of embeddings'
  | 'cached tokens'
  | 'reasoning tokens'
  | 'response model of streams'
  | 'texts'
  | 'texts of failed calls'
  | 'texts of embeddings'
  | 'system prompts';

interface Emitter {
  /** What this emitter does not export, so that no receiver can know it. */
  lacks?: readonly Part[];
  user?: string;
  /** Null if the emitter makes one up for each conversation. */
  session?: string | null;
  feature?: string;
}

/** The texts of these come as separate log records, which are skipped. */
const textsInLogs = ['texts', 'cached tokens', 'reasoning tokens', 'texts of embeddings'] as const;

const emitters: Readonly<Record<string, Emitter>> = {
  'official-openai': { lacks: ['texts of embeddings'] },
  'official-openai-span-and-event': { lacks: ['texts of embeddings'] },
  'official-openai-v2': { lacks: ['cached tokens', 'reasoning tokens', 'texts of embeddings'] },
  'official-openai-v1.30': { lacks: textsInLogs },
  'official-openai-js': { lacks: textsInLogs },
  'official-anthropic': {},
  'openinference-openai': { user: 'user-2', session: 'session-2' },
  'openinference-anthropic': { user: 'user-2', session: 'session-2' },
  'openinference-langchain': { lacks: ['response model of streams'] },
  'openinference-openai-js': {
    lacks: [
      'failed calls',
      'tokens of streams',
      'tokens of embeddings',
      'response model of streams',
    ],
  },
  'openinference-anthropic-js': { lacks: ['system prompts'] },
  'openllmetry-openai': {},
  'openllmetry-anthropic': {},
  'openllmetry-openai-js': {
    lacks: ['failed calls', 'embeddings', 'tokens of streams', 'cached tokens', 'reasoning tokens'],
  },
  'openllmetry-anthropic-js': {},
  'pydantic-ai': { lacks: ['texts of failed calls'], session: null, feature: 'helper' },
  logfire: { lacks: ['texts of embeddings', 'response model of streams'] },
  'ai-sdk': { lacks: ['reasoning tokens', 'texts of embeddings'] },
  'ai-sdk-5': {
    lacks: ['cached tokens', 'reasoning tokens'],
    user: 'user-3',
    session: 'session-3',
    feature: 'helper',
  },
  'two-openai': {},
  'three-openai': {},
  'two-anthropic': {},
  'langchain-and-openai': {},
};

let service: TestService;
before(async () => {
  service = await startTestService({ flags: { 'log-level': 'info' } });
});
after(() => service.stop());

async function replay({ key }: KeyHolder, { requests }: Fixture): Promise<void> {
  for (const { path, type, gzipBase64 } of requests) {
    const body = gunzipSync(Buffer.from(gzipBase64, 'base64'));
    const answer = await service.call(key, 'POST', path, body, { 'content-type': type });
    assert.equal(answer.status, 200, answer.text);
    assert.ok(['', '{}'].includes(answer.text), answer.text);
  }
}

type TraceJson = Answer['json'];

/** In the order of the calls. */
async function tracesOf({ key }: KeyHolder): Promise<TraceJson[]> {
  const { json } = await service.call(key, 'GET', '/traces?limit=100');
  const startOf = ({ started_at: at }: TraceJson): string => at;
  return json.traces.sort((a: TraceJson, b: TraceJson) => (startOf(a) < startOf(b) ? -1 : 1));
}

test('every emitter has its fixture, with the versions of its packages', () => {
  assert.deepEqual([...fixtures.keys()].sort(), Object.keys(emitters).sort());
  for (const { versions } of fixtures.values()) assert.ok(Object.keys(versions).length > 3);
});

for (const [name, emitter] of Object.entries(emitters)) {
  const fixture = fixtures.get(name);
  if (!fixture) continue;
  const lacks = new Set<Part>(emitter.lacks);
  const calls = fixture.calls.filter((call) => !isLeftOut(call, lacks));

  describe(name, () => {
    test('every call is stored once, also if the exporter sends everything again', async () => {
      const holder = await service.keyFor();
      await replay(holder, fixture);
      await replay(holder, fixture);
      const traces = await tracesOf(holder);
      assert.equal(traces.length, calls.length);
      for (const [i, call] of calls.entries()) {
        const trace = traces[i];
        const where = `call ${i}: ${JSON.stringify(call)}\n${JSON.stringify(trace)}`;
        assertOutcome(trace, call, where);
        assertTokens(trace, call, lacks, where);
        assertTexts(trace, call, lacks, where);
        assertLabels(trace, emitter, where);
      }
    });

    test("the sums are those of the provider's own count", async () => {
      const holder = await service.keyFor();
      await replay(holder, fixture);
      const traces = await tracesOf(holder);
      const reported = calls.filter((call) => hasTokens(call, lacks));
      assert.ok(reported.length > 0);
      const sum = (values: (number | null | undefined)[]): number =>
        values.reduce<number>((total, value) => total + (value ?? 0), 0);
      assert.equal(
        sum(traces.map((trace) => trace.prompt_tokens)),
        sum(reported.map(({ tokens }) => tokens?.input)),
      );
      assert.equal(
        sum(traces.map((trace) => trace.completion_tokens)),
        sum(reported.map(({ tokens }) => tokens?.output)),
      );
    });
  });
}

function isEmbedding({ model }: ProviderCall): boolean {
  return model.includes('embedding');
}

function isFailed({ tokens }: ProviderCall): boolean {
  return tokens === null;
}

function isLeftOut(call: ProviderCall, lacks: ReadonlySet<Part>): boolean {
  return (
    (isFailed(call) && lacks.has('failed calls')) || (isEmbedding(call) && lacks.has('embeddings'))
  );
}

function hasTokens(call: ProviderCall, lacks: ReadonlySet<Part>): boolean {
  return (
    !isFailed(call) &&
    !(call.isStreamed && lacks.has('tokens of streams')) &&
    !(isEmbedding(call) && lacks.has('tokens of embeddings'))
  );
}

function assertOutcome(trace: TraceJson, call: ProviderCall, where: string): void {
  assert.equal(trace.model, call.model, where);
  assert.equal(trace.provider, call.provider, where);
  assert.equal(trace.status, isFailed(call) ? 'error' : 'success', where);
  assert.ok(trace.latency_ms >= 0 && trace.latency_ms < 10_000, where);
  if (!isFailed(call)) return;
  assert.match(trace.error_message, /The fake provider rejects this/, where);
  assert.match(trace.error_type, /\w+/, where);
}

function assertTokens(
  trace: TraceJson,
  call: ProviderCall,
  lacks: ReadonlySet<Part>,
  where: string,
): void {
  const { tokens } = call;
  if (tokens === null || !hasTokens(call, lacks)) {
    assert.equal(trace.prompt_tokens, null, where);
    return;
  }
  assert.equal(trace.prompt_tokens, tokens.input, where);
  assert.equal(trace.completion_tokens ?? 0, tokens.output, where);
  const cached = lacks.has('cached tokens') && call.provider === 'openai' ? 0 : tokens.cacheRead;
  assert.equal(trace.cache_read_tokens ?? 0, cached, where);
  assert.equal(trace.cache_write_tokens ?? 0, tokens.cacheWrite, where);
  const reasoning = lacks.has('reasoning tokens') ? 0 : tokens.reasoning;
  assert.equal(trace.reasoning_tokens ?? 0, reasoning, where);
  const lacksModel = call.isStreamed && lacks.has('response model of streams');
  if (!lacksModel) assert.equal(trace.response_model ?? null, call.responseModel, where);
}

function assertTexts(
  trace: TraceJson,
  call: ProviderCall,
  lacks: ReadonlySet<Part>,
  where: string,
): void {
  const isWithout =
    lacks.has('texts') ||
    (isEmbedding(call) && lacks.has('texts of embeddings')) ||
    (isFailed(call) && lacks.has('texts of failed calls'));
  if (isWithout) {
    assert.deepEqual([trace.input, trace.output], [null, null], where);
    return;
  }
  assert.ok(trace.input.includes(call.asked), where);
  if (isEmbedding(call)) return;
  if (!lacks.has('system prompts')) assert.ok(trace.input.includes('Be brief.'), where);
  if (call.answered !== null) assert.equal(trace.output, call.answered, where);
  else if (!isFailed(call)) {
    assert.ok(
      ['weather', 'Paris'].every((word) => trace.output.includes(word)),
      where,
    );
  }
}

function assertLabels(trace: TraceJson, emitter: Emitter, where: string): void {
  const { user = 'user-1', session = 'session-1', feature = 'recorded-app' } = emitter;
  assert.equal(trace.user_identifier, user, where);
  if (session !== null) assert.equal(trace.session_id, session, where);
  assert.equal(trace.feature_name, feature, where);
  assert.equal(trace.environment, 'test', where);
  assert.match(trace.run_id, /^[0-9a-f]{32}$/, where);
}
