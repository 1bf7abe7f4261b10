import { limits } from '../../limits.ts';
import type { AttributeValue } from './signal.ts';

const controlCharacters = /\p{Cc}/u;
const eachControlCharacter = /\p{Cc}+/gu;

/** As callers of `POST /traces` must send it: cut to its length, without control characters. */
export function labelOf(value: AttributeValue, name: string): string | null {
  if (value === null || typeof value === 'object') return null;
  // A character has at most two code units.
  const text = String(value).slice(0, 2 * limits.labelCharsMax);
  const plain = controlCharacters.test(text) ? text.replaceAll(eachControlCharacter, ' ') : text;
  const adapted = (adapt[name]?.(plain) ?? plain).toWellFormed();
  if (adapted.length <= limits.labelCharsMax) return adapted || null;
  return Array.from(adapted).slice(0, limits.labelCharsMax).join('');
}

/** The AI SDK adds the API to the name of the provider. */
const apiOfProvider = /\.(?:chat|responses|messages|completion|embedding)$/;

/** Names of providers, which emitters write in several ways: `OpenAI`, `openai.chat`. */
const adapt: Readonly<Record<string, (text: string) => string>> = {
  'gen_ai.system': (text) => text.toLowerCase().replace(apiOfProvider, ''),
  'gen_ai.provider.name': (text) => text.replace(apiOfProvider, ''),
  'llm.system': (text) => text.toLowerCase(),
  'ai.model.provider': (text) => text.split('.', 1)[0] ?? text,
  'service.name': (text) => (text.startsWith('unknown_service') ? '' : text),
};
