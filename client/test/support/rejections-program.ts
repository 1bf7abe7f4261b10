/**
 * Run by a test as a process, because the test runner handles unhandled rejections itself:
 * `rejections-program.ts URL bare|wrapped dropped|caught` prints what went unhandled and what was recorded.
 */
import OpenAI from 'openai';
import { wrapOpenAI } from '../../src/wrap-openai.ts';
import { memoryRecorder, turn } from './memory-recorder.ts';
import { until } from './until.ts';

const [, , url = '', which, how] = process.argv;
const recorder = memoryRecorder();
const bare = new OpenAI({ apiKey: 'k', baseURL: `${url}/v1`, maxRetries: 0 });
const { completions } = (which === 'bare' ? bare : wrapOpenAI(recorder, bare)).chat;

const unhandled: string[] = [];
process.on('unhandledRejection', (reason) => {
  unhandled.push(`${(reason as Error).constructor.name}: ${(reason as Error).message}`);
});

const failing = { model: 'gpt-4o', messages: [{ role: 'user' as const, content: 'fail 400' }] };
const ignore = (): void => {};
if (how === 'dropped') {
  void completions.create(failing);
  void completions.create({ ...failing, stream: true });
  void completions.create(failing).then(ignore);
} else {
  completions.create(failing).catch(ignore);
  completions.create({ ...failing, stream: true }).then(ignore, ignore);
  completions.create(failing).asResponse().catch(ignore);
  completions.create(failing).withResponse().catch(ignore);
  completions.parse(failing).catch(ignore);
  completions.create(failing, { signal: AbortSignal.abort() }).catch(ignore);
  // Awaited only after the failure, in the same turn of the event loop.
  const late = completions.create(failing);
  (late as unknown as { responsePromise: Promise<unknown> }).responsePromise.catch(() =>
    late.catch(ignore),
  );
}
await until('all failures are seen', () =>
  how === 'dropped' ? unhandled.length >= 3 : recorder.traces.length >= 7,
);
// Further rejections or traces would arrive now.
await turn(100);
const statuses = recorder.traces.map(({ status }) => status);
process.stdout.write(JSON.stringify({ unhandled, statuses }));
