import type { PayloadName } from '../core/trace-fields.ts';

/** The payloads of a query like `omit=input,output`, which the schema has checked. */
export function omittedPayloads(omit: string | undefined): ReadonlySet<PayloadName> {
  return new Set((omit?.split(',') ?? []) as PayloadName[]);
}
