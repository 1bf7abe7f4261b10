import { settingFlags } from '../config.ts';
import { formatTimestamp } from '../core/clock.ts';
import { OperatorError } from '../errors.ts';
import { makeKey } from '../store/teams-and-keys.ts';
import { jsonFlag, textFlag } from './command.ts';
import type { Command } from './command.ts';
import { parseDuration } from './duration.ts';
import { printKey } from './print-key.ts';
import { withStore } from './with-store.ts';

export const keysRotate: Command = {
  name: 'keys rotate',
  summary: 'Replace an API key; the old one goes on for a while',
  words: ['KEY_ID'],
  flags: {
    overlap: {
      type: 'string',
      help: 'how long the old key goes on, such as 24h (the default) or 0s',
    },
    ...jsonFlag,
    ...settingFlags('database'),
  },
  more: 'The new key has the team, name, scope and length of life of the old one.',
  run: (call) =>
    withStore(call, async (store, clock) => {
      const oldId = call.words[0] ?? '';
      const overlapUs = parseDuration('--overlap', textFlag(call, 'overlap') ?? '24h');
      const nowUs = clock();
      const old = await store.findKey(oldId);
      if (!old)
        throw new OperatorError(`There is no key "${oldId}". tracetally keys list shows all.`);
      if (old.revokedAtUs !== null) {
        throw new OperatorError(`The key ${oldId} was revoked. Create a new one.`);
      }
      if (old.replacedBy !== null) {
        throw new OperatorError(`The key ${oldId} was rotated before. Rotate ${old.replacedBy}.`);
      }
      const lifeUs = old.expiresAtUs === null ? null : old.expiresAtUs - old.createdAtUs;
      const { key, record } = makeKey({
        name: old.name,
        scope: old.scope,
        nowUs,
        expiresAtUs: lifeUs === null ? null : nowUs + lifeUs,
      });
      const endsAtUs = Math.min(nowUs + overlapUs, old.expiresAtUs ?? Infinity);
      if (!(await store.rotateKey(oldId, record, endsAtUs))) {
        throw new OperatorError(
          `The key ${oldId} was revoked or rotated just now. Nothing was changed.`,
        );
      }
      call.note(`The old key ${oldId} ends at ${formatTimestamp(endsAtUs)}.`);
      printKey(call, key, record, { id: old.teamId, name: old.teamName });
      return 0;
    }),
};
