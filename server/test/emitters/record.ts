/**
 * Records what real emitters export when they call the fake providers: `node record.ts [EMITTER…]`. It needs Python 3.11 with venv, npm,
 * and their registries; packages are installed into a folder of the system's folder for temporary files, and used again the next time.
 */
import { execFileSync, spawn } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync, gunzipSync } from 'node:zlib';
import { startFakeProviders } from './fake-providers.ts';
import type { Fixture, RecordedRequest } from './fixture.ts';

const here = fileURLToPath(new URL('.', import.meta.url));
const installs = join(tmpdir(), 'tracetally-emitters');

const pythonPackages = [
  'openai',
  'anthropic',
  'langchain-openai',
  'pydantic-ai-slim[openai,anthropic]',
  'logfire',
  'opentelemetry-exporter-otlp-proto-http',
  'opentelemetry-util-genai==1.3b0',
  'opentelemetry-instrumentation-genai-openai==1.3b0',
  'opentelemetry-instrumentation-genai-anthropic==1.3b0',
  'opentelemetry-instrumentation-openai',
  'opentelemetry-instrumentation-anthropic',
  'openinference-instrumentation-openai',
  'openinference-instrumentation-anthropic',
  'openinference-instrumentation-langchain',
];
/** The older official package, which needs older parts. */
const pythonV2Packages = [
  'openai',
  'opentelemetry-exporter-otlp-proto-http',
  'opentelemetry-util-genai==0.4b0',
  'opentelemetry-instrumentation-openai-v2==2.4b0',
];
const npmPackages = [
  '@opentelemetry/api',
  'zod',
  'openai',
  '@anthropic-ai/sdk',
  'ai',
  '@ai-sdk/otel',
  '@ai-sdk/openai',
  '@ai-sdk/anthropic',
  '@opentelemetry/sdk-node',
  '@opentelemetry/exporter-trace-otlp-http',
  '@opentelemetry/exporter-trace-otlp-proto',
  '@opentelemetry/instrumentation-openai',
  '@arizeai/openinference-instrumentation-openai',
  '@arizeai/openinference-instrumentation-anthropic',
  '@traceloop/instrumentation-openai',
  '@traceloop/instrumentation-anthropic',
];
/** The AI SDK before its spans followed the official conventions, and the last Anthropic SDK that OpenLLMetry for JavaScript supports. */
const olderVersions: Readonly<Record<string, string>> = {
  ai: '5',
  '@ai-sdk/openai': '2',
  '@ai-sdk/anthropic': '2',
  '@anthropic-ai/sdk': '0.65',
};
const olderPackages = npmPackages.map((name) =>
  name in olderVersions ? `${name}@${olderVersions[name]}` : name,
);

interface Emitter {
  kind: keyof typeof install;
  env?: Record<string, string>;
}

const latest = { OTEL_SEMCONV_STABILITY_OPT_IN: 'gen_ai_latest_experimental' };
const capture = 'OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT';

const emitters: Readonly<Record<string, Emitter>> = {
  'official-openai': { kind: 'python', env: { ...latest, [capture]: 'span_only' } },
  'official-anthropic': { kind: 'python', env: { ...latest, [capture]: 'span_only' } },
  'official-openai-v2': { kind: 'python-v2', env: { ...latest, [capture]: 'span_only' } },
  'official-openai-v1.30': { kind: 'python-v2', env: { [capture]: 'true' } },
  'official-openai-span-and-event': {
    kind: 'python',
    env: { ...latest, [capture]: 'span_and_event' },
  },
  'openinference-openai': { kind: 'python' },
  'openinference-anthropic': { kind: 'python' },
  'openllmetry-openai': { kind: 'python' },
  'openllmetry-anthropic': { kind: 'python' },
  'pydantic-ai': { kind: 'python' },
  logfire: { kind: 'python' },
  'openinference-langchain': { kind: 'python' },
  'two-openai': { kind: 'python', env: { ...latest, [capture]: 'span_only' } },
  'three-openai': { kind: 'python', env: { ...latest, [capture]: 'span_only' } },
  'two-anthropic': { kind: 'python' },
  'langchain-and-openai': { kind: 'python' },
  'official-openai-js': { kind: 'npm', env: { ...latest, [capture]: 'true' } },
  'openinference-openai-js': { kind: 'npm' },
  'openinference-anthropic-js': { kind: 'npm' },
  'openllmetry-openai-js': { kind: 'npm' },
  'openllmetry-anthropic-js': { kind: 'npm-older' },
  'ai-sdk': { kind: 'npm' },
  'ai-sdk-5': { kind: 'npm-older' },
};

interface Installed {
  /** The folder of the packages. */
  folder: string;
  command: readonly [string, ...string[]];
  versions: Readonly<Record<string, string>>;
}

function installPython(name: string, packages: readonly string[]): Installed {
  const folder = join(installs, name);
  const python = join(folder, 'bin', 'python');
  if (!existsSync(python)) {
    execFileSync('python3', ['-m', 'venv', folder]);
    execFileSync(python, ['-m', 'pip', 'install', '-q', ...packages], { stdio: 'inherit' });
  }
  const listed = execFileSync(python, ['-m', 'pip', 'list', '--format=json']).toString();
  const list = JSON.parse(listed) as { name: string; version: string }[];
  const versions = Object.fromEntries(list.map((one) => [one.name, one.version]));
  copyFileSync(join(here, 'programs', 'emit.py'), join(folder, 'emit.py'));
  return { folder, command: [python, 'emit.py'], versions };
}

function installNpm(name: string, packages: readonly string[]): Installed {
  const folder = join(installs, name);
  if (!existsSync(join(folder, 'node_modules'))) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'package.json'), '{"private":true,"type":"module"}');
    const flags = ['install', '--no-audit', '--no-fund', '--legacy-peer-deps', '--ignore-scripts'];
    execFileSync('npm', [...flags, ...packages], { cwd: folder, stdio: 'inherit' });
  }
  copyFileSync(join(here, 'programs', 'emit.mjs'), join(folder, 'emit.mjs'));
  const listed = execFileSync('npm', ['ls', '--json', '--depth=0'], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'ignore'],
  }).toString();
  const { dependencies } = JSON.parse(listed) as {
    dependencies: Record<string, { version: string }>;
  };
  const entries = Object.entries(dependencies).map(([one, { version }]) => [one, version]);
  return { folder, command: [process.execPath, 'emit.mjs'], versions: Object.fromEntries(entries) };
}

const install = {
  python: () => installPython('python', pythonPackages),
  'python-v2': () => installPython('python-v2', pythonV2Packages),
  npm: () => installNpm('npm', npmPackages),
  'npm-older': () => installNpm('npm-older', olderPackages),
} as const;

/** Takes everything that is exported, like a receiver that accepts it. */
async function startCapture(): Promise<{ url: string; requests: RecordedRequest[]; stop(): void }> {
  const requests: RecordedRequest[] = [];
  const server = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('end', () => {
      const type = request.headers['content-type'] ?? '';
      const whole = Buffer.concat(pieces);
      const body = request.headers['content-encoding'] === 'gzip' ? gunzipSync(whole) : whole;
      const gzipBase64 = gzipSync(withoutHome(body), { level: 9 }).toString('base64');
      if (request.url !== '/v1/metrics')
        requests.push({ path: request.url ?? '', type, gzipBase64 });
      response.writeHead(200, { 'content-type': type });
      response.end(type.includes('json') ? '{}' : '');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, requests, stop: () => server.close() };
}

/** Stack traces contain the home folder. Its length must stay: it is encoded in the body. */
function withoutHome(body: Buffer): Buffer {
  const home = homedir();
  return Buffer.from(body.toString('latin1').replaceAll(home, '~'.repeat(home.length)), 'latin1');
}

async function record(name: string, { kind, env = {} }: Emitter): Promise<void> {
  const { folder, command, versions } = install[kind]();
  const providers = await startFakeProviders();
  const receiver = await startCapture();
  const [file, ...args] = [...command, name];
  const child = spawn(file, args, {
    cwd: folder,
    stdio: 'inherit',
    env: {
      PATH: process.env['PATH'],
      OPENAI_API_KEY: 'sk-none',
      OPENAI_BASE_URL: `${providers.url}/v1`,
      ANTHROPIC_API_KEY: 'none',
      ANTHROPIC_BASE_URL: providers.url,
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
      // The machine is not part of the recording.
      OTEL_NODE_RESOURCE_DETECTORS: 'env',
      OTEL_SERVICE_NAME: 'recorded-app',
      OTEL_RESOURCE_ATTRIBUTES:
        'deployment.environment.name=test,user.id=user-1,session.id=session-1',
      TRACELOOP_TRACE_CONTENT: 'true',
      ...env,
    },
  });
  const code = await new Promise((resolve) => child.once('exit', resolve));
  receiver.stop();
  const { calls } = providers;
  await providers.stop();
  if (code !== 0) throw new Error(`${name} ended with ${String(code)}`);
  const fixture: Fixture = { emitter: name, env, versions, calls, requests: receiver.requests };
  const path = join(here, 'fixtures', `${name}.json`);
  writeFileSync(path, `${JSON.stringify(fixture, null, 2)}\n`);
  process.stdout.write(`${name}: ${calls.length} calls, ${receiver.requests.length} requests\n`);
}

const wanted = process.argv.slice(2);
for (const [name, emitter] of Object.entries(emitters)) {
  if (wanted.length === 0 || wanted.includes(name)) await record(name, emitter);
}
