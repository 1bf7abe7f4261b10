import type { PayloadName } from '../core/trace-fields.ts';

/** The payloads of a query such as `omit=input,output`, which the schema has validated. */
export function omittedPayloads(omit: string | undefined): ReadonlySet<PayloadName> {
  return new Set((omit?.split(',') ?? []) as PayloadName[]);
}
