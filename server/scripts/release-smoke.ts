import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runToEnd, strangerEnvironment } from '../../client/test/support/stranger.ts';

/** Tries both packages where they were installed: start, first key, record, read, dashboard, verify, stop. Returns what was done. */
export async function trySmoke(folder: string): Promise<string[]> {
  const stranger = { cwd: folder, env: strangerEnvironment };
  const launcher = join(folder, 'node_modules/.bin/tracetally');
  const service = spawn(launcher, ['--port', '0'], { ...stranger, timeout: 300_000 });
  try {
    const ended = new Promise<number | null>((resolve) => service.once('close', resolve));
    const { url, key } = await whenListening(service);
    const steps = [`started with a first key at ${url}`];

    writeFileSync(
      join(folder, 'record.mjs'),
      `import { TraceTally } from '@tracetally/client';
      const tally = new TraceTally({ baseUrl: ${JSON.stringify(url)}, apiKey: ${JSON.stringify(key)} });
      await tally.record({ model: 'smoke', cost_usd: 0.5 });
      const { total } = await tally.traces.list();
      if (total !== 1) throw new Error('there are ' + total + ' traces');`,
    );
    await runToEnd('node', ['record.mjs'], stranger);
    steps.push('recorded a trace with the client and read it');

    const page = await (await fetch(`${url}/`)).text();
    if (!page.includes('<script type="module"')) throw new Error('there is no dashboard');
    steps.push('served the dashboard');

    await runToEnd(launcher, ['verify'], stranger);
    steps.push('verified the database');

    service.kill('SIGTERM');
    const code = await ended;
    if (code !== 0) throw new Error(`the service ended with ${code}`);
    return [...steps, 'stopped'];
  } finally {
    service.kill('SIGKILL');
  }
}

function whenListening(service: ReturnType<typeof spawn>): Promise<{ url: string; key: string }> {
  let said = '';
  let log = '';
  return new Promise((resolve, reject) => {
    service.stderr?.on('data', (data: Buffer) => (log += data.toString()));
    service.stdout?.on('data', (data: Buffer) => {
      said += data.toString();
      const url = /is listening on (\S+)/.exec(said)?.[1];
      const key = /tt_\w+/.exec(said)?.[0];
      if (url !== undefined && key !== undefined) resolve({ url, key });
    });
    service.once('error', reject);
    service.once('close', () => reject(new Error(`the service did not start: ${said}${log}`)));
  });
}
