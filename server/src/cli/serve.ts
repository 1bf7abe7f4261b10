import closeWithGrace from 'close-with-grace';
import { allSettings, envOnlyHelp, readConfig, settingFlags } from '../config.ts';
import { limits } from '../limits.ts';
import type { FirstAccess, Service } from '../main.ts';
import type { Command } from './command.ts';
import { exampleTrace } from './demo-data.ts';
import { codeLifeInWords, signInLink } from './sign-in-link.ts';

export const serve: Command = {
  name: 'serve',
  summary: 'Run the service',
  words: [],
  flags: settingFlags(...allSettings),
  more: `A flag wins over its environment variable. Only the environment sets:\n  ${envOnlyHelp}`,
  async run({ flags }) {
    const config = readConfig(flags);
    // Here and not above: the other commands need none of the HTTP stack and start in a fifth of the time.
    const { startService } = await import('../main.ts');
    const service = await startService(config);
    const stopped = untilAskedToStop(service);
    // Whoever reads this may send a signal at once, so it is heeded by now.
    greet(service);
    await stopped;
    return 0;
  },
};

/** Resolves never: the process ends in close-with-grace, with 0 after a signal and 1 after an error. */
function untilAskedToStop({ logger, stop }: Service): Promise<void> {
  return new Promise(() => {
    closeWithGrace({ delay: limits.stopTimeoutMs }, async ({ signal, err }) => {
      if (err) logger.fatal({ reason: err.stack ?? err.message }, 'stopping after an error');
      await stop({ notice: signal === 'SIGTERM' });
    });
  });
}

/** A closed or full standard output must not end the service. The log says so, but never holds the key. */
function greet({ url, first, logger }: Service): void {
  const lost = (error: Error): void =>
    logger.error(
      { reason: error.message },
      first === null
        ? 'the greeting could not be written to standard output'
        : 'the greeting with the first key could not be written to standard output; make another key with "tracetally keys create"',
    );
  process.stdout.on('error', lost);
  process.stdout.write(`${greeting(url, first)}\n`);
}

function greeting(url: string, first: FirstAccess | null): string {
  const dashboard = `TraceTally listens on ${url}\nDashboard: ${url}/`;
  if (first === null) return dashboard;
  const { key, signInCode } = first;
  return `TraceTally listens on ${url}

This store is new, so here is a key for its team "default". It is shown only once:

  ${key}

Open the dashboard, signed in (the link ${codeLifeInWords}; tracetally sign-in prints a new one):

  ${signInLink(url, signInCode)}

Record your first AI call:

  curl -sS ${url}/traces -H 'Authorization: Bearer ${key}' -H 'Content-Type: application/json' \\
    -d '${JSON.stringify(exampleTrace)}'

and see what it adds up to, there or here:

  curl -sS ${url}/analytics/overview -H 'Authorization: Bearer ${key}'
`;
}
