import { beginCall, guard } from './wrap-call.ts';
import type { Call } from './wrap-call.ts';
import type { Scope, Stand } from './wrap-client.ts';
import { observeResult } from './wrap-promise.ts';
import type { AnswerReader } from './wrap-promise.ts';

/** The content of a request, and how its answers are read. */
export interface Request extends Omit<AnswerReader, 'signal'> {
  model: unknown;
  input: string | undefined;
  /** The body to send instead, if the wrapper adds an option. */
  body?: object;
}

export type ReadRequest = (body: Record<string, unknown>) => Request;

/** Records a method of the SDKs that takes a body and options, and returns a promise. */
export function recorded(scope: Scope, provider: string, readRequest: ReadRequest): Stand {
  const { recorder, labels } = scope;
  return (method, args) => {
    const begun = guard(recorder, () => {
      const request = readRequest((args[0] ?? {}) as Record<string, unknown>);
      const { signal } = (args[1] ?? {}) as { signal?: AbortSignal | null };
      const { model, input } = request;
      const call = beginCall(recorder, { model, input, labels, provider });
      return { call, request, reader: { ...request, signal: signal ?? undefined } };
    });
    if (begun === undefined) return method(...args);
    const { call, request, reader } = begun;
    const result = runOrFail(call, () => method(request.body ?? args[0], ...args.slice(1)));
    return guard(recorder, () => observeResult(recorder, result, call, reader)) ?? result;
  };
}

function runOrFail<T>(call: Call, run: () => T): T {
  try {
    return run();
  } catch (error) {
    call.fail(error);
    throw error;
  }
}
