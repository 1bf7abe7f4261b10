import { readMessagesRequest } from './provider-anthropic.ts';
import { providerOf } from './provider-names.ts';
import type { Labels, Recorder } from './recorder.ts';
import { wrapClient } from './wrap-client.ts';
import type { Plan, Scope } from './wrap-client.ts';
import { recorded } from './wrap-record.ts';

/**
 * The same client, with its messages recorded. It behaves like the unwrapped client, which is not changed. Cheap enough to call for
 * each request with other labels: `wrapAnthropic(anthropic, { user })`.
 */
export function wrapAnthropic<C extends object>(
  recorder: Recorder,
  client: C,
  labels: Labels = {},
): C {
  return wrapClient({ recorder, labels }, client, planFor);
}

function planFor(scope: Scope, client: object): Plan {
  const create = recorded(scope, providerOf(client, 'anthropic'), readMessagesRequest);
  const helpers = ['parse', 'stream', 'toolRunner', 'thread', '_toolRunnerThread'];
  const messages = { calls: { create }, helpers };
  return { copies: ['withOptions'], parts: { messages, beta: { parts: { messages } } } };
}
