import { formatTimestamp } from '../core/clock.ts';
import { OperatorError } from '../errors.ts';
import { makeKey } from '../store/teams-and-keys.ts';
import { storeFlags } from './command.ts';
import type { Command } from './command.ts';
import { parseDuration } from './duration.ts';
import { printKey } from './print-key.ts';
import { flagWords } from './shell-words.ts';
import { keyWithId, withStore } from './with-store.ts';

export const keysRotate: Command = {
  name: 'keys rotate',
  summary: 'Replace an API key; the old one stays valid for a while',
  words: ['KEY_ID'],
  flags: {
    overlap: { help: 'how long the old key stays valid, such as 24h (the default) or 0s' },
    ...storeFlags,
  },
  more: 'The new key has the same team, name, scope and lifetime as the old one. It is shown once; only its hash is stored.',
  run: withStore(async (store, clock, call) => {
    const oldId = call.words[0] ?? '';
    const overlapUs = parseDuration('--overlap', call.flags['overlap'] ?? '24h');
    const nowUs = clock();
    const old = await keyWithId(call, store, oldId);
    if (old.revokedAtUs !== null) {
      const create = call.line('keys', 'create', ...flagWords('team', old.teamName));
      throw new OperatorError(`The key ${oldId} was revoked. To create a new one, run: ${create}`);
    }
    if (old.replacedBy !== null) {
      const rotate = call.line('keys', 'rotate', old.replacedBy);
      throw new OperatorError(
        `The key ${oldId} has already been rotated. To rotate its replacement, run: ${rotate}`,
      );
    }
    const { key, record } = makeKey({
      name: old.name,
      scope: old.scope,
      nowUs,
      expiresAtUs: old.expiresAtUs === null ? null : nowUs + (old.expiresAtUs - old.createdAtUs),
    });
    const endsAtUs = Math.min(nowUs + overlapUs, old.expiresAtUs ?? Infinity);
    if (!(await store.rotateKey(oldId, record, endsAtUs))) {
      throw new OperatorError(
        `The key ${oldId} was revoked or rotated by another command just now. Nothing was changed.`,
      );
    }
    call.note(`The old key ${oldId} is valid until ${formatTimestamp(endsAtUs)}.`);
    printKey(call, key, record, { id: old.teamId, name: old.teamName });
  }),
};
