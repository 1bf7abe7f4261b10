import { isIP } from 'node:net';
import { delimiter, dirname, resolve } from 'node:path';
import { isAcceptableEnvKey } from './core/api-key.ts';
import { OperatorError } from './errors.ts';
import { limits } from './limits.ts';
import type { Database } from './store/open-store.ts';

/** The team of the first key and of TRACETALLY_API_KEY. */
export const defaultTeam = 'default';

/** One thing that can be set from outside: by a flag, else by an environment variable, else a default. */
export interface Setting {
  /** `base-path` is set by `--base-path` and by `TRACETALLY_BASE_PATH`. */
  name: string;
  /** The flag takes no value. */
  isSwitch?: true;
  /** There is no flag: a key on a command line would show in the list of processes. */
  isEnvOnly?: true;
  fallback?: string;
  help: string;
  expected: string;
  /** Null if the text is not valid. */
  parse(text: string): unknown;
}

const logLevels = ['debug', 'info', 'warn', 'error', 'silent'];
const logLevelsInWords = 'debug, info, warn, error or silent';

export const settings = {
  host: {
    name: 'host',
    fallback: '127.0.0.1',
    help: 'address that the server listens on',
    expected: 'an address or host name',
    parse: (text: string) => (/^[^\s/]+$/.test(text) ? text : null),
  },
  port: {
    name: 'port',
    fallback: '4000',
    help: 'port that the server listens on; 0 picks a free one',
    expected: 'a port from 0 to 65535',
    parse: (text: string) => wholeNumber(text, 0, 65_535),
  },
  database: {
    name: 'database',
    fallback: 'sqlite:./data/tracetally.db',
    help: 'where traces are stored',
    expected:
      'sqlite:PATH, such as sqlite:./data/tracetally.db, or postgres://USER@HOST:PORT/DATABASE',
    parse: parseDatabase,
  },
  basePath: {
    name: 'base-path',
    fallback: '',
    help: 'path prefix of every endpoint, such as /v1',
    expected: 'a path such as /v1, without a slash at the end',
    parse: (text: string) => (/^(\/[A-Za-z0-9._~-]+)*$/.test(text) ? text : null),
  },
  logLevel: {
    name: 'log-level',
    fallback: 'info',
    help: logLevelsInWords,
    expected: logLevelsInWords,
    parse: (text: string) => (logLevels.includes(text) ? text : null),
  },
  bodyBytesMax: {
    name: 'body-limit',
    fallback: String(limits.bodyBytesMax),
    help: 'maximum size of a trace as JSON, in bytes',
    expected: `a number of bytes from 1024 to ${limits.queueBytesMax / 2}`,
    parse: (text: string) => wholeNumber(text, 1024, limits.queueBytesMax / 2),
  },
  priceMissingCosts: {
    name: 'price-missing-costs',
    isSwitch: true,
    fallback: 'false',
    help: 'compute the cost of traces that are posted without one',
    expected: 'true or false',
    parse: (text: string) => (text === 'true' || text === 'false' ? text === 'true' : null),
  },
  trustProxy: {
    name: 'trust-proxy',
    help: 'proxies whose X-Forwarded-* headers are trusted: addresses or networks, separated by commas',
    expected: 'addresses or networks, such as 10.0.0.0/8,127.0.0.1',
    parse: (text: string) => (text.split(',').every(isNetwork) ? text : null),
  },
  keyRequestsPerMinuteMax: {
    name: 'rate-limit',
    help: 'requests per minute per API key; no limit by default',
    expected: 'a number from 1 to 1000000',
    parse: (text: string) => wholeNumber(text, 1, 1_000_000),
  },
  metricsListen: {
    name: 'metrics-listen',
    help: 'address and port of GET /metrics for Prometheus; not served by default',
    expected: 'HOST:PORT, such as 127.0.0.1:9464 or [::1]:9464',
    parse: parseAddress,
  },
  metricsTeams: {
    name: 'metrics-teams',
    help: 'number of teams whose traces and cost are shown in the metrics; none by default',
    expected: `a number from 1 to ${limits.metricsTeamsMax}`,
    parse: (text: string) => wholeNumber(text, 1, limits.metricsTeamsMax),
  },
  metricsToken: {
    name: 'metrics-token',
    isEnvOnly: true,
    help: 'a bearer token that GET /metrics requires; none by default',
    expected: `${limits.envKeyCharsMin} to ${limits.envKeyCharsMax} visible ASCII characters without spaces`,
    parse: (text: string) => (isAcceptableEnvKey(text) ? text : null),
  },
  envKey: {
    name: 'api-key',
    isEnvOnly: true,
    help: `an API key for the team "${defaultTeam}", valid as long as this is set`,
    expected: `${limits.envKeyCharsMin} to ${limits.envKeyCharsMax} visible ASCII characters without spaces`,
    parse: (text: string) => (isAcceptableEnvKey(text) ? text : null),
  },
} satisfies Record<string, Setting>;

type Settings = typeof settings;
type SettingName = keyof Settings;
type Parsed<S extends Setting> = Exclude<ReturnType<S['parse']>, null>;

/** The value of every setting: null if it is not set and has no default. */
export type Config = {
  readonly [N in SettingName]:
    | Parsed<Settings[N]>
    | (Settings[N] extends { fallback: string } ? never : null);
};

export const allSettings = Object.keys(settings) as SettingName[];

/** The environment variable of a setting. */
export function envOf({ name }: Setting): string {
  return `TRACETALLY_${name.replaceAll('-', '_').toUpperCase()}`;
}

/** The flags of settings, with their help. */
export function settingFlags(
  ...names: SettingName[]
): Record<string, { help: string; type?: 'boolean' }> {
  const chosen = names.map((name): Setting => settings[name]).filter(({ isEnvOnly }) => !isEnvOnly);
  return Object.fromEntries(
    chosen.map((setting) => {
      const note = setting.fallback ? `, default ${setting.fallback}` : '';
      const help = `${setting.help} (${envOf(setting)}${note})`;
      return [setting.name, setting.isSwitch ? { help, type: 'boolean' } : { help }];
    }),
  );
}

/** What only the environment can set, for the help text. */
export const envOnlyHelp = Object.values<Setting>(settings)
  .filter(({ isEnvOnly }) => isEnvOnly)
  .map((setting) => `${envOf(setting)}  ${setting.help}: ${setting.expected}`);

/** The text of each flag; `true` for one without a value. */
type Flags = Readonly<Record<string, string | undefined>>;
type Env = Readonly<Record<string, string | undefined>>;

export function readConfig(flags: Flags, env: Env = process.env): Config {
  const values = allSettings.map((name) => [name, readSetting(name, flags, env)]);
  return Object.freeze(Object.fromEntries(values) as Config);
}

/** For commands that need only the store: a wrong port does not concern them. */
export function readDatabase(flags: Flags, env: Env = process.env): Database {
  return readSetting('database', flags, env);
}

function readSetting<N extends SettingName>(name: N, flags: Flags, env: Env): Config[N] {
  const setting: Setting = settings[name];
  const text = givenText(setting, flags, env) ?? setting.fallback;
  const source = flags[setting.name] === undefined ? envOf(setting) : `--${setting.name}`;
  return (text === undefined ? null : parseSetting(setting, source, text)) as Config[N];
}

/** What the flag or the environment says, before the default. */
function givenText(setting: Setting, flags: Flags, env: Env): string | undefined {
  return flags[setting.name] ?? env[envOf(setting)];
}

function parseSetting({ parse, expected }: Setting, source: string, text: string): unknown {
  const value = parse(text);
  if (value !== null) return value;
  // The value itself is not repeated: it may be a key.
  throw new OperatorError(`${source} is not valid. Expected ${expected}.`);
}

/** A store that is named by another flag than --database. */
export function parseDatabaseFlag(flag: string, text: string): Database {
  return parseSetting(settings.database, flag, text) as Database;
}

/** Flags of settings that are not at their defaults, with the given texts, so that a hint can repeat them. */
export function repeatedSettings(flags: Flags, ...names: SettingName[]): [string, string][] {
  return names.flatMap((name) => {
    const setting: Setting = settings[name];
    const text = givenText(setting, flags, process.env);
    return text === undefined || text === setting.fallback ? [] : [[setting.name, text]];
  });
}

/** How this process was started, as far as the environment tells. */
export function readStart(env: Env = process.env) {
  const { PATH, TRACETALLY_LAUNCHER, npm_package_json: manifest, INIT_CWD } = env;
  return {
    /** The script of the installed package that has started this process, as the shell found it. */
    launcher: TRACETALLY_LAUNCHER ?? null,
    searchPath: (PATH ?? '').split(delimiter),
    /** Set in scripts that npm runs; `shellFolder` is the folder of the shell in which npm was started. */
    npm: manifest && INIT_CWD ? { packageFolder: dirname(manifest), shellFolder: INIT_CWD } : null,
  };
}

/** Where a server with these settings is reached. */
export function readServerUrl(flags: Flags, env: Env = process.env): string {
  const host = readSetting('host', flags, env);
  const port = readSetting('port', flags, env);
  if (port === 0)
    throw new OperatorError(
      'With port 0 the server picks a free port, so its address is not known. Specify it with --url.',
    );
  return serverUrl({ host, port, basePath: readSetting('basePath', flags, env) });
}

/** An address that a person can open: a server that listens on all addresses is reached at the loopback. */
export function serverUrl({ host, port, basePath }: Pick<Config, 'host' | 'port' | 'basePath'>) {
  const reachable = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}${basePath}`;
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

/** `127.0.0.1:9464` or `[::1]:9464` */
function parseAddress(text: string): { host: string; port: number } | null {
  const [, host, port = ''] = /^(\[[0-9A-Fa-f:.]+\]|[^\s/:[\]]+):([0-9]{1,5})$/.exec(text) ?? [];
  const parsed = wholeNumber(port, 0, 65_535);
  if (host === undefined || parsed === null) return null;
  return { host: host.replace(/^\[(.*)\]$/, '$1'), port: parsed };
}

function parseDatabase(text: string): Database | null {
  if (/^postgres(ql)?:\/\//.test(text)) {
    return URL.canParse(text) ? { kind: 'postgres', url: text } : null;
  }
  const path = /^sqlite:(.+)$/.exec(text)?.[1];
  return path === undefined ? null : { kind: 'sqlite', path: resolve(path) };
}
