import { usageOf } from './provider-openai-chat.ts';
import type { ReadRequest } from './wrap-record.ts';
import { asText } from './wrap-text.ts';

interface Embeddings {
  model?: string;
  usage?: { prompt_tokens?: number } | null;
}

/** The body of `embeddings.create`. The vectors are not recorded. */
export const readEmbeddingsRequest: ReadRequest = ({ model, input }) => ({
  model,
  input: asText(input),
  answer: (data) => {
    const { model: responseModel, usage } = data as Embeddings;
    return { responseModel, usage: usageOf(usage) };
  },
  collector: () => ({ see: () => true, hasOutput: () => false, answer: () => ({}) }),
});
