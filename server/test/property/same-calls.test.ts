import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TraceDraft } from '../../src/core/trace-fields.ts';
import type { Call } from '../../src/http/protocols/call-draft.ts';
import { countOnce } from '../../src/store/count-once.ts';
import { runsOf } from '../support/runs.ts';
import { chooseSeed, seededRandom, shuffled } from '../support/seeded-random.ts';
import {
  joined,
  randomCalls,
  randomRequests,
  tokensOf,
  withoutLateConnections,
} from './call-histories.ts';
import type { CallHistory } from './call-histories.ts';

const ordersOfEach = 5;

/** What is stored of the requests, one after the other. */
function storedOf(requests: readonly (readonly Call[])[]): TraceDraft[] {
  const known = new Map<string, string>();
  return requests.flatMap((request) => {
    const calls = joined(request);
    const drafts = calls.map(({ draft }) => draft);
    const ids = calls.map((call) => call.ids);
    return countOnce({ teamId: 't', drafts }, ids, known).write.drafts;
  });
}

/** Runs random histories in several orders each, and says how to repeat one that fails. */
function forEachOrder(
  check: (history: CallHistory, requests: Call[][], where: string) => void,
): void {
  const seed = chooseSeed();
  for (let run = 0; run < runsOf(100); run++) {
    const random = seededRandom(seed + run);
    const history = randomCalls(random);
    for (let order = 0; order < ordersOfEach; order++) {
      const requests = randomRequests(random, history.reports);
      const ids = requests.map((request) => request.map((report) => report.ids));
      check(history, requests, `TEST_SEED=${seed + run}, order ${order}: ${JSON.stringify(ids)}`);
    }
  }
}

test('the same calls are counted, in whichever order and requests their reports come', () => {
  forEachOrder(({ calls, tokens }, requests, where) => {
    const stored = storedOf(withoutLateConnections(requests));
    assert.equal(stored.length, calls, where);
    if (tokens) assert.deepEqual(tokensOf(stored), tokens, where);
  });
});

test('no call is lost, even if the report that connects two others comes last', () => {
  forEachOrder(({ calls }, requests, where) => {
    assert.ok(storedOf(requests).length >= calls, where);
  });
});

test('in one request, what is stored of each call does not depend on the order of its reports', () => {
  const seed = chooseSeed();
  for (let run = 0; run < runsOf(100); run++) {
    const random = seededRandom(seed + run);
    const { reports } = randomCalls(random);
    const timed = reports.map((report, i): Call => {
      const startUs = 1000 + Math.floor(random() * 5);
      const text = random() < 0.5 ? `text ${i}` : null;
      const draft = { ...report.draft, output: text, session_id: random() < 0.5 ? `s${i}` : null };
      return { ...report, draft, startUs, endUs: startUs + Math.floor(random() * 5) };
    });
    const first = sorted(joined(timed));
    for (let order = 0; order < ordersOfEach; order++) {
      const again = sorted(joined(shuffled(random, timed)));
      assert.deepEqual(again, first, `TEST_SEED=${seed + run}`);
    }
  }
});

function sorted(calls: ReturnType<typeof joined>): string[] {
  return calls.map((call) => JSON.stringify(call)).sort();
}
