import { settingFlags } from '../config.ts';
import { OperatorError } from '../errors.ts';
import { jsonFlag } from './command.ts';
import type { Command } from './command.ts';
import { withStore } from './with-store.ts';

export const keysRevoke: Command = {
  name: 'keys revoke',
  summary: 'Revoke an API key; it stops working within a second',
  words: ['KEY_ID'],
  flags: { ...jsonFlag, ...settingFlags('database') },
  run: (call) =>
    withStore(call, async (store, clock) => {
      const id = call.words[0] ?? '';
      const isRevoked = await store.revokeKey(id, clock());
      if (!isRevoked && !(await store.findKey(id))) {
        throw new OperatorError(`There is no key "${id}". tracetally keys list shows all.`);
      }
      const sentence = isRevoked ? `Revoked the key ${id}.` : `The key ${id} was revoked before.`;
      call.print(call.flags['json'] ? JSON.stringify({ key_id: id, revoked: true }) : sentence);
      return 0;
    }),
};
