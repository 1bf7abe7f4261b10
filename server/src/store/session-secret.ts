import { randomBytes } from 'node:crypto';

/** The row of `server_secrets` that signs session cookies. */
export const sessionSecretName = 'session';

const secretBytes = 32;

export function makeSessionSecret(): Uint8Array {
  return randomBytes(secretBytes);
}
