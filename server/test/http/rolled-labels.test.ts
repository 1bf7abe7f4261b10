import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { draftTrace } from '../../src/core/trace.ts';
import { limits } from '../../src/limits.ts';
import { verifyTeam } from '../../src/tools/verify.ts';
import { rollUp } from '../support/roll-up.ts';
import { startTestService } from '../support/service.ts';
import type { TestService } from '../support/service.ts';

let service: TestService;

before(async () => {
  service = await startTestService();
});
after(() => service.stop());

// Emoji count as one character each and have four bytes.
for (const [what, character] of [
  ['CJK characters', '語'],
  ['emoji', '🦜'],
] as const) {
  test(`traces whose four labels have the greatest length in ${what} are rolled up`, async () => {
    const { key, teamId } = await service.keyFor();
    const label = (last: number): string =>
      character.repeat(limits.labelCharsMax - 1) + String.fromCodePoint(0x4e00 + last);
    const drafts = Array.from({ length: 20 }, (_, i) =>
      draftTrace({
        model: label(i % 5),
        feature_name: label(100 + (i % 5)),
        environment: label(200),
        provider: label(300),
        user_identifier: label(400 + i),
      }),
    );
    const [outcome] = await service.beside.append([{ teamId, drafts }]);
    assert.equal(outcome?.kind, 'stored');
    await rollUp(service.beside, [teamId]);
    assert.equal((await service.beside.marks(teamId)).seq, 20);
    for (const [path, field, first] of [
      ['by-model', 'model', label(0)],
      ['by-feature', 'feature_name', label(100)],
    ] as const) {
      const { json } = await service.call(key, 'GET', `/analytics/${path}`);
      assert.equal(json.length, 5);
      assert.deepEqual([json[0][field], json[0].call_count], [first, 4]);
    }
    assert.deepEqual(await verifyTeam(service.beside, teamId), { traces: 20, differences: [] });
  });
}
