import type { Payload } from '../store/payload.ts';

/** The payloads of a query like `omit=input,output`, which the schema has checked. */
export function omittedPayloads(omit: string | undefined): ReadonlySet<Payload> {
  return new Set((omit?.split(',') ?? []) as Payload[]);
}
