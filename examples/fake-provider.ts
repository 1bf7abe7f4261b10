import { startFakeAnthropic } from '../client/test/support/fake-anthropic.ts';
import { startFakeOpenAI } from '../client/test/support/fake-openai.ts';

export interface Provider {
  baseURL: string;
  apiKey: string;
  stop(): Promise<void>;
}

/** The provider at OPENAI_BASE_URL, or a fake one on the loopback interface if it is not set. */
export async function openAIProvider(): Promise<Provider> {
  const { OPENAI_BASE_URL: baseURL, OPENAI_API_KEY: apiKey = '' } = process.env;
  if (baseURL !== undefined) return { baseURL, apiKey, stop: async () => {} };
  const { url, stop } = await startFakeOpenAI();
  return { baseURL: `${url}/v1`, apiKey: 'none', stop };
}

/** The same with ANTHROPIC_BASE_URL. */
export async function anthropicProvider(): Promise<Provider> {
  const { ANTHROPIC_BASE_URL: baseURL, ANTHROPIC_API_KEY: apiKey = '' } = process.env;
  if (baseURL !== undefined) return { baseURL, apiKey, stop: async () => {} };
  const { url, stop } = await startFakeAnthropic();
  return { baseURL: url, apiKey: 'none', stop };
}
