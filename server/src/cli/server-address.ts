import { readServerUrl, repeatedSettings, settingFlags } from '../config.ts';
import { OperatorError } from '../errors.ts';
import type { Call, Flag } from './command.ts';
import { flagWords } from './shell-words.ts';

/** Flags of commands that print a link to a server. */
export const addressFlags: Readonly<Record<string, Flag>> = {
  url: {
    help: 'address of the server in the browser, such as https://tally.example; by default from --host, --port and --base-path',
  },
  ...settingFlags('host', 'port', 'basePath'),
};

/** Where the browser reaches the server. */
export function serverAddress(call: Call): string {
  const text = call.flags['url'];
  if (text === undefined) return readServerUrl(call.flags);
  const url = URL.parse(text);
  const isPlain = url !== null && /^https?:$/.test(url.protocol) && !/[?#@]/.test(text);
  if (isPlain) return url.href.replace(/\/+$/, '');
  throw new OperatorError(
    '--url is not valid. Expected an address such as https://tally.example/v1.',
  );
}

/** The settings that decide where a server listens, to be repeated in a hint. */
export function listenWords({ flags }: Call): string[] {
  return repeatedSettings(flags, 'host', 'port', 'basePath').flatMap(([flag, text]) =>
    flagWords(flag, text),
  );
}

/** The same for commands that have `addressFlags`. */
export function addressWords(call: Call): string[] {
  const url = call.flags['url'];
  return [...listenWords(call), ...(url === undefined ? [] : flagWords('url', url))];
}
