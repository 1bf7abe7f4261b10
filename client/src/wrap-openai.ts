import { providerOf } from './provider-names.ts';
import { readChatRequest } from './provider-openai-chat.ts';
import { readEmbeddingsRequest } from './provider-openai-embeddings.ts';
import { readResponsesRequest } from './provider-openai-responses.ts';
import type { Labels, Recorder } from './recorder.ts';
import { wrapClient } from './wrap-client.ts';
import type { Plan, Scope } from './wrap-client.ts';
import { recorded } from './wrap-record.ts';

/**
 * The same client, with its chat completions, responses and embeddings recorded. It behaves like the unwrapped client, which is not
 * changed. Cheap enough to call for each request with other labels: `wrapOpenAI(openai, { user })`.
 */
export function wrapOpenAI<C extends object>(
  recorder: Recorder,
  client: C,
  labels: Labels = {},
): C {
  return wrapClient({ recorder, labels }, client, planFor);
}

function planFor(scope: Scope, client: object): Plan {
  const provider = providerOf(client, 'openai');
  const chatHelpers = ['parse', 'stream', 'runTools'];
  const responses = {
    calls: { create: recorded(scope, provider, readResponsesRequest) },
    helpers: ['parse', 'stream'],
  };
  return {
    copies: ['withOptions'],
    parts: {
      chat: {
        parts: {
          completions: {
            calls: { create: recorded(scope, provider, readChatRequest) },
            helpers: chatHelpers,
          },
        },
      },
      responses,
      embeddings: { calls: { create: recorded(scope, provider, readEmbeddingsRequest) } },
      // Older versions of the SDK have the helpers here.
      beta: { parts: { chat: { parts: { completions: { helpers: chatHelpers } } }, responses } },
    },
  };
}
