import type { TraceInput } from './api-types.ts';
import { TraceTallyError } from './errors.ts';
import type { Reporter } from './reporter.ts';
import type { Settings } from './settings.ts';
import { serialise } from './transport.ts';
import type { Bytes, Replacer } from './transport.ts';

/** Turns a trace into the JSON bytes to send, or throws a TraceTallyError that says why it cannot. */
export type Serialise = (trace: unknown) => Bytes;

type TextField = keyof Pick<TraceInput, 'input' | 'output' | 'error_message'>;
type TextRule = (text: string) => string | undefined;

const maskFailedText = '[mask failed]';

/** Applies the options `environment`, `mask` and `captureText`: no text leaves the process without passing here. */
export function createSerialise(
  { environment, mask, captureText }: Pick<Settings, 'environment' | 'mask' | 'captureText'>,
  reporter: Reporter,
): Serialise {
  const masked = mask === null ? unchanged : createMask(mask, reporter);
  const payload = captureText ? masked : () => undefined;
  const hasRules = mask !== null || !captureText;
  const rules: Partial<Record<TextField, TextRule>> = hasRules
    ? { input: payload, output: payload, error_message: masked }
    : {};
  const replacer =
    hasRules || environment !== null ? () => createReplacer(rules, environment) : () => undefined;
  return (trace) => serialise(trace, replacer());
}

function unchanged(text: string): string {
  return text;
}

function createMask(mask: (text: string) => unknown, reporter: Reporter): TextRule {
  return (text) => {
    try {
      const masked = mask(text);
      if (typeof masked === 'string') return masked;
      // The rejection of an asynchronous mask must not end the process.
      Promise.resolve(masked).catch(() => {});
    } catch {
      // Reported below, without the error: its message may quote the text.
    }
    reporter.reportOnce(
      new TraceTallyError({
        code: 'mask_failed',
        detail: `The option "mask" threw an error or did not return a string. The text was replaced by "${maskFailedText}"; further failures are not reported.`,
      }),
    );
    return maskFailedText;
  };
}

/** Works on what JSON.stringify is about to write, so that `toJSON` methods and getters cannot bypass the rules. */
function createReplacer(
  rules: Readonly<Record<string, TextRule>>,
  environment: string | null,
): Replacer {
  let root: unknown;
  return function (key, value) {
    if (root === undefined) {
      root = environment === null ? value : withEnvironment(value, environment);
      return root;
    }
    if (this !== root || !Object.hasOwn(rules, key)) return value;
    if (value === undefined || value === null) return value;
    const text = typeof value === 'string' ? value : (JSON.stringify(value) as string | undefined);
    return text === undefined ? undefined : rules[key]?.(text);
  };
}

/** A trace may have its own environment. */
function withEnvironment(trace: unknown, environment: string): unknown {
  if (typeof trace !== 'object' || trace === null || Array.isArray(trace)) return trace;
  const own = (trace as { environment?: unknown }).environment;
  return own === undefined || own === null ? { ...trace, environment } : trace;
}
