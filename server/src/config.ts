import { isIP } from 'node:net';
import { delimiter, dirname, resolve } from 'node:path';
import { isAcceptableEnvKey } from './core/api-key.ts';
import { OperatorError } from './errors.ts';
import { limits } from './limits.ts';
import type { Database } from './store/open-store.ts';

/** Everything that can be set from outside: flag, then environment, then default. */
export interface Config {
  host: string;
  port: number;
  database: Database;
  basePath: string;
  logLevel: string;
  bodyBytesMax: number;
  trustProxy: string | false;
  keyRequestsPerMinuteMax: number | null;
  envKey: string | null;
}

/** The team of the first key and of TRACETALLY_API_KEY. */
export const defaultTeam = 'default';

interface Setting<T> {
  /** Null if there is no flag: a key on a command line would show in the list of processes. */
  flag: string | null;
  env: string;
  fallback: string | null;
  help: string;
  parse(text: string): T | null;
  expected: string;
}

const settings = {
  host: setting('host', 'TRACETALLY_HOST', '127.0.0.1', 'address to listen on', {
    expected: 'an address or host name',
    parse: (text) => (/^[^\s/]+$/.test(text) ? text : null),
  }),
  port: setting('port', 'TRACETALLY_PORT', '4000', 'port to listen on; 0 picks a free one', {
    expected: 'a port from 0 to 65535',
    parse: (text) => wholeNumber(text, 0, 65_535),
  }),
  database: setting(
    'database',
    'TRACETALLY_DATABASE',
    'sqlite:./data/tracetally.db',
    'where traces are stored',
    {
      expected:
        'sqlite:PATH, such as sqlite:./data/tracetally.db, or postgres://USER@HOST:PORT/DATABASE',
      parse: parseDatabase,
    },
  ),
  basePath: setting(
    'base-path',
    'TRACETALLY_BASE_PATH',
    '',
    'path prefix of every endpoint, such as /v1',
    {
      expected: 'a path such as /v1, without a slash at the end',
      parse: (text) => (/^(\/[A-Za-z0-9._~-]+)*$/.test(text) ? text : null),
    },
  ),
  logLevel: setting(
    'log-level',
    'TRACETALLY_LOG_LEVEL',
    'info',
    'debug, info, warn, error or silent',
    {
      expected: 'debug, info, warn, error or silent',
      parse: (text) => (['debug', 'info', 'warn', 'error', 'silent'].includes(text) ? text : null),
    },
  ),
  bodyBytesMax: setting(
    'body-limit',
    'TRACETALLY_BODY_LIMIT',
    String(limits.bodyBytesMax),
    'largest trace as JSON, in bytes',
    {
      expected: `a number of bytes from 1024 to ${limits.queueBytesMax / 2}`,
      parse: (text) => wholeNumber(text, 1024, limits.queueBytesMax / 2),
    },
  ),
  trustProxy: setting(
    'trust-proxy',
    'TRACETALLY_TRUST_PROXY',
    null,
    'proxies whose X-Forwarded-* headers are trusted: addresses or networks, separated by commas',
    {
      expected: 'addresses or networks, such as 10.0.0.0/8,127.0.0.1',
      parse: (text) => (text.split(',').every(isNetwork) ? text : null),
    },
  ),
  keyRequestsPerMinuteMax: setting(
    'rate-limit',
    'TRACETALLY_RATE_LIMIT',
    null,
    'requests per minute per API key; no limit by default',
    {
      expected: 'a number from 1 to 1000000',
      parse: (text) => wholeNumber(text, 1, 1_000_000),
    },
  ),
  envKey: setting(
    null,
    'TRACETALLY_API_KEY',
    null,
    `an API key of the team "${defaultTeam}", valid as long as this is set`,
    {
      expected: `${limits.envKeyCharsMin} to ${limits.envKeyCharsMax} visible ASCII characters without spaces`,
      parse: (text) => (isAcceptableEnvKey(text) ? text : null),
    },
  ),
};

type SettingName = keyof typeof settings;

/** The flags of settings, in the form that `util.parseArgs` takes, with their help. */
export function settingFlags(...names: SettingName[]) {
  return Object.fromEntries(
    names.flatMap((name) => {
      const { flag, env, fallback, help } = settings[name];
      const note = fallback === null || fallback === '' ? '' : `, default ${fallback}`;
      return flag === null
        ? []
        : [[flag, { type: 'string' as const, help: `${help} (${env}${note})` }]];
    }),
  );
}

/** What the documentation must say of each setting. */
export function describeSettings(): {
  flag: string | null;
  env: string;
  fallback: string | null;
}[] {
  return Object.values(settings).map(({ flag, env, fallback }) => ({ flag, env, fallback }));
}

export const allSettings = Object.keys(settings) as SettingName[];

/** What only the environment can set, for the help text. */
export const envOnlyHelp = `${settings.envKey.env}  ${settings.envKey.help}: ${settings.envKey.expected}`;

type Flags = Readonly<Record<string, unknown>>;
type Env = Readonly<Record<string, string | undefined>>;

/** For commands that need only the store: a wrong port does not concern them. */
export function readDatabase(flags: Flags, env: Env = process.env): Database {
  return openSettings(flags, env).need(settings.database);
}

/** A store that is named by another flag than --database. */
export function parseDatabaseFlag(flag: string, text: string): Database {
  const { expected, parse } = settings.database;
  const database = parse(text);
  if (database) return database;
  throw new OperatorError(`${flag} is not valid: expected ${expected}.`);
}

/** Settings that are not at their defaults, as they were given, so that a hint can repeat them. */
export function repeatedSettings(
  flags: Flags,
  ...names: SettingName[]
): { flag: string; text: string }[] {
  return names.flatMap((name) => {
    const { flag, fallback } = settings[name];
    const text = openSettings(flags, process.env).given(settings[name]);
    return flag === null || text === null || text === fallback ? [] : [{ flag, text }];
  });
}

/** What npm tells the scripts that it runs. */
export interface NpmStart {
  packageFolder: string;
  /** The folder of the shell in which npm was started. */
  shellFolder: string;
}

/** How this process was started, as far as the environment tells. */
export function readStart(env: Env = process.env): {
  searchPath: readonly string[];
  npm: NpmStart | null;
} {
  const manifest = env['npm_package_json'];
  const shellFolder = env['INIT_CWD'];
  return {
    searchPath: (env['PATH'] ?? '').split(delimiter),
    npm:
      manifest === undefined || shellFolder === undefined
        ? null
        : { packageFolder: dirname(manifest), shellFolder },
  };
}

/** Where a server with these settings is reached. */
export function readServerUrl(flags: Flags, env: Env = process.env): string {
  const { need } = openSettings(flags, env);
  const [host, port] = [need(settings.host), need(settings.port)];
  if (port === 0)
    throw new OperatorError(
      'With port 0 the server picks a free port, so its address is not known. Give it with --url.',
    );
  return serverUrl({ host, port, basePath: need(settings.basePath) });
}

/** Where a server without any settings is reached. */
export function defaultServerUrl(): string {
  return readServerUrl({}, {});
}

/** An address that a person can open: a server that listens on all addresses is reached at the loopback. */
export function serverUrl({ host, port, basePath }: Pick<Config, 'host' | 'port' | 'basePath'>) {
  const reachable = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}${basePath}`;
}

export function readConfig(flags: Flags, env: Env = process.env): Config {
  const { read, need } = openSettings(flags, env);
  return Object.freeze({
    host: need(settings.host),
    port: need(settings.port),
    database: need(settings.database),
    basePath: need(settings.basePath),
    logLevel: need(settings.logLevel),
    bodyBytesMax: need(settings.bodyBytesMax),
    trustProxy: read(settings.trustProxy) ?? false,
    keyRequestsPerMinuteMax: read(settings.keyRequestsPerMinuteMax),
    envKey: read(settings.envKey),
  });
}

function openSettings(flags: Flags, env: Env) {
  function flagText({ flag }: Setting<unknown>): string | undefined {
    return flag === null ? undefined : (flags[flag] as string | undefined);
  }
  /** By flag or environment, before the default. */
  function given(from: Setting<unknown>): string | null {
    return flagText(from) ?? env[from.env] ?? null;
  }
  function read<T>(from: Setting<T>): T | null {
    const text = given(from) ?? from.fallback;
    if (text === null) return null;
    const value = from.parse(text);
    if (value !== null) return value;
    const name = flagText(from) === undefined ? from.env : `--${from.flag}`;
    // The value itself is not repeated: it may be a key.
    throw new OperatorError(`${name} is not valid: expected ${from.expected}.`);
  }
  function need<T>(from: Setting<T>): T {
    return read(from) as T;
  }
  return { given, read, need };
}

function setting<T>(
  flag: string | null,
  env: string,
  fallback: string | null,
  help: string,
  { expected, parse }: Pick<Setting<T>, 'expected' | 'parse'>,
): Setting<T> {
  return { flag, env, fallback, help, expected, parse };
}

/** `10.0.0.0/8` or `::1` */
function isNetwork(text: string): boolean {
  const [address = '', prefix, ...rest] = text.split('/');
  const bits = isIP(address) === 4 ? 32 : 128;
  return (
    isIP(address) !== 0 &&
    rest.length === 0 &&
    (prefix === undefined || wholeNumber(prefix, 0, bits) !== null)
  );
}

function wholeNumber(text: string, min: number, max: number): number | null {
  const value = /^[0-9]{1,9}$/.test(text) ? Number(text) : NaN;
  return value >= min && value <= max ? value : null;
}

function parseDatabase(text: string): Database | null {
  if (/^postgres(ql)?:\/\//.test(text)) {
    return URL.canParse(text) ? { kind: 'postgres', url: text } : null;
  }
  const path = /^sqlite:(.+)$/.exec(text)?.[1];
  return path === undefined ? null : { kind: 'sqlite', path: resolve(path) };
}
