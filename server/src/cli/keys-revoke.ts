import { settingFlags } from '../config.ts';
import { jsonFlag } from './command.ts';
import type { Command } from './command.ts';
import { keyWithId, withStore } from './with-store.ts';

export const keysRevoke: Command = {
  name: 'keys revoke',
  summary: 'Revoke an API key; it stops working within a second',
  words: ['KEY_ID'],
  flags: { ...jsonFlag, ...settingFlags('database') },
  run: (call) =>
    withStore(call, async (store, clock) => {
      const id = call.words[0] ?? '';
      const isRevoked = await store.revokeKey(id, clock());
      if (!isRevoked) await keyWithId(call, store, id);
      const sentence = isRevoked
        ? `Revoked the key ${id}.`
        : `The key ${id} has already been revoked.`;
      call.print(call.flags['json'] ? JSON.stringify({ key_id: id, revoked: true }) : sentence);
      return 0;
    }),
};
