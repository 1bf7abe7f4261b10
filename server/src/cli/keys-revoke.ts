import { storeFlags } from './command.ts';
import type { Command } from './command.ts';
import { keyWithId, withStore } from './with-store.ts';

export const keysRevoke: Command = {
  name: 'keys revoke',
  summary: 'Revoke an API key; it stops working within a second',
  words: ['KEY_ID'],
  flags: storeFlags,
  run: withStore(async (store, clock, call) => {
    const id = call.words[0] ?? '';
    const isRevoked = await store.revokeKey(id, clock());
    if (!isRevoked) await keyWithId(call, store, id);
    call.print(
      { key_id: id, revoked: true },
      isRevoked ? `Revoked the key ${id}.` : `The key ${id} has already been revoked.`,
    );
  }),
};
