import closeWithGrace from 'close-with-grace';
import {
  allSettings,
  defaultTeam,
  envOnlyHelp,
  readConfig,
  readServerUrl,
  settingFlags,
} from '../config.ts';
import { limits } from '../limits.ts';
import type { Service } from '../main.ts';
import { keepNewObjectsYoung } from '../v8.ts';
import type { Call, Command } from './command.ts';
import { exampleTrace } from './demo-data.ts';
import { flagWords } from './shell-words.ts';
import { codeLifeInWords, signInLink } from './sign-in-link.ts';

export const serve: Command = {
  name: 'serve',
  summary: 'Run the service',
  flags: settingFlags(...allSettings),
  more: `A flag takes precedence over its environment variable. These settings have no flag:\n  ${envOnlyHelp.join('\n  ')}`,
  async run(call) {
    const switched = Object.fromEntries([...call.switches].map((name) => [name, 'true']));
    const config = readConfig({ ...call.flags, ...switched });
    keepNewObjectsYoung();
    // Loaded only here: the other commands do not need the HTTP stack and start in a fifth of the time.
    const { startService } = await import('../main.ts');
    const service = await startService(config);
    const stopped = untilAskedToStop(service);
    // After the signal handlers: a reader of the startup message may send a signal at once.
    greet(call, service);
    await stopped;
  },
};

/** Never resolves: the process ends in close-with-grace, with 0 after a signal and 1 after an error. */
function untilAskedToStop({ logger, stop }: Service): Promise<void> {
  return new Promise(() => {
    closeWithGrace({ delay: limits.stopTimeoutMs }, async ({ signal, err }) => {
      if (err) logger.fatal({ reason: err.stack ?? err.message }, 'stopping after an error');
      await stop({ notice: signal === 'SIGTERM' });
    });
  });
}

/** A closed or full standard output must not end the service. The log says so, but never holds the key. */
function greet(call: Call, service: Service): void {
  const { first, logger } = service;
  const createKey = call.line('keys', 'create', ...flagWords('team', defaultTeam));
  const lost = (error: Error): void =>
    logger.error(
      { reason: error.message },
      first === null
        ? 'the startup message could not be written to standard output'
        : `the startup message with the first key could not be written to standard output; to create another key, run: ${createKey}`,
    );
  process.stdout.on('error', lost);
  process.stdout.write(`${greeting(call, service)}\n`);
}

function greeting(call: Call, { url, first, hasDashboard }: Service): string {
  const listening = `TraceTally is listening on ${url}`;
  const dashboard = hasDashboard ? `Dashboard: ${url}/` : noDashboard;
  if (first === null) return `${listening}\n${dashboard}`;
  const { key, signInCode } = first;
  return `${listening}

This database is new. Here is an API key for its team "${defaultTeam}". It is shown only once:

  ${key}

${hasDashboard ? dashboardParagraph(call, url, signInCode) : noDashboard}

Record your first AI call:

  curl -sS ${url}/traces -H 'Authorization: Bearer ${key}' -H 'Content-Type: application/json' \\
    -d '${JSON.stringify(exampleTrace)}'

See the totals:

  curl -sS ${url}/analytics/overview -H 'Authorization: Bearer ${key}'
`;
}

const noDashboard =
  'The dashboard has not been built, so only the API is served. To build it, run "npm ci" and then "npm start" in the checkout.';

function dashboardParagraph(call: Call, url: string, code: string): string {
  const isDefault = url === readServerUrl({}, {});
  const address = isDefault ? [] : flagWords('url', url);
  const again = call.line('sign-in', ...flagWords('team', defaultTeam), ...address);
  return `To open the dashboard, use this link. It signs you in, ${codeLifeInWords}:

  ${signInLink(url, code)}

To print a new link, run:

  ${again}`;
}
