import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { cpSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { needProgram } from '../support/debian.ts';
import { eventually } from '../support/eventually.ts';
import { scrape } from '../support/metrics.ts';
import { spanOf, spansRequest } from '../support/otlp.ts';
import { startTestService, temporaryFolder } from '../support/service.ts';
import type { TestService } from '../support/service.ts';
import { skipUnlessCi } from '../support/skip.ts';
import { freePort } from './helpers.ts';

const monitoring = fileURLToPath(new URL('../../../deploy/monitoring/', import.meta.url));

interface Panel {
  id: number;
  type: string;
  title: string;
  gridPos: { x: number; y: number; w: number; h: number };
  targets?: { expr: string; refId: string }[];
}

const { panels } = JSON.parse(readFileSync(join(monitoring, 'grafana-dashboard.json'), 'utf8')) as {
  panels: Panel[];
};

function promtool(...args: string[]) {
  return spawnSync('promtool', args, { encoding: 'utf8', cwd: monitoring });
}

/** Prometheus with the configuration in `deploy`, except for its intervals and the address of the service. */
async function startPrometheus(t: TestContext, { metricsUrl }: TestService): Promise<string> {
  const folder = temporaryFolder();
  cpSync(join(monitoring, 'alerts.yml'), join(folder.path, 'alerts.yml'));
  const config = readFileSync(join(monitoring, 'prometheus.yml'), 'utf8')
    .replaceAll(/interval: 15s/g, 'interval: 500ms')
    .replace('127.0.0.1:9464', new URL(metricsUrl ?? '').host);
  const file = join(folder.path, 'prometheus.yml');
  writeFileSync(file, config);
  const address = `127.0.0.1:${await freePort()}`;
  const child = spawn(
    'prometheus',
    [
      `--config.file=${file}`,
      `--storage.tsdb.path=${join(folder.path, 'data')}`,
      `--web.listen-address=${address}`,
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  let log = '';
  child.stderr.on('data', (data: Buffer) => (log += data.toString()));
  const ended = new Promise((resolve) => child.once('close', resolve));
  t.after(async () => {
    child.kill('SIGTERM');
    await ended;
    folder.remove();
  });
  const origin = `http://${address}`;
  await eventually('Prometheus', 120_000, async () => {
    assert.equal(child.exitCode, null, log);
    return fetch(`${origin}/-/ready`).then(
      ({ ok }) => ok,
      () => null,
    );
  });
  return origin;
}

async function ask<T>(origin: string, path: string): Promise<T> {
  const response = await fetch(`${origin}/api/v1/${path}`);
  const answer = (await response.json()) as { status: string; error?: string; data: T };
  assert.equal(answer.status, 'success', `${path}: ${answer.error}`);
  return answer.data;
}

/** One request of every kind that the panels show. */
async function load(service: TestService): Promise<void> {
  const { key } = await service.keyFor();
  for (let i = 0; i < 10; i++) {
    await service.call(key, 'POST', '/traces', { model: 'm', cost_usd: 0.1 });
  }
  await service.call(key, 'POST', '/v1/traces', spansRequest([spanOf()]));
  await service.call(key, 'GET', '/analytics/overview');
  await service.call(key, 'POST', '/traces', {});
}

describe('monitoring', () => {
  const missing = needProgram('promtool', 'prometheus') ?? needProgram('prometheus', 'prometheus');

  test('promtool accepts the rules and the configuration, and every rule fires on its fault alone', (t) => {
    if (missing !== null) return skipUnlessCi(t, missing);
    for (const args of [
      ['check', 'rules', 'alerts.yml'],
      ['check', 'config', 'prometheus.yml'],
      ['test', 'rules', 'alerts-test.yml'],
    ]) {
      const { status, stdout, stderr } = promtool(...args);
      assert.equal(status, 0, stdout + stderr);
    }
    const rules = readFileSync(join(monitoring, 'alerts.yml'), 'utf8').match(/alert: \w+/g) ?? [];
    const tested = readFileSync(join(monitoring, 'alerts-test.yml'), 'utf8');
    for (const rule of rules)
      assert.ok(tested.includes(rule.replace('alert: ', 'alertname: ')), rule);
  });

  test('promtool finds no fault in the names and types of the metrics', async (t) => {
    if (missing !== null) return skipUnlessCi(t, missing);
    const service = await startTestService({ flags: { 'metrics-listen': '127.0.0.1:0' } });
    t.after(() => service.stop());
    await load(service);
    const { text } = await scrape(service);
    const own = text.split(/(?=^# HELP )/m).filter((part) => part.startsWith('# HELP tracetally_'));
    assert.ok(own.length > 10);
    const checked = spawnSync('promtool', ['check', 'metrics'], {
      input: own.join(''),
      encoding: 'utf8',
    });
    assert.equal(checked.status, 0, checked.stdout + checked.stderr);
  });

  test('Prometheus scrapes a service, every query of the dashboard returns data, and an alert fires when writes stop', async (t) => {
    if (missing !== null) return skipUnlessCi(t, missing);
    const service = await startTestService({
      flags: { 'metrics-listen': '127.0.0.1:0', 'metrics-teams': '5' },
    });
    t.after(() => service.stop());
    const prometheus = await startPrometheus(t, service);

    const queries = panels.flatMap(({ title, targets = [] }) =>
      targets.map(({ expr }) => ({
        title,
        query: expr.replaceAll('$__rate_interval', '1m').replaceAll('$instance', '.*'),
      })),
    );
    assert.ok(queries.length > 20);
    let empty: string[] = [];
    await eventually(
      () => `data of ${empty.join(', ')}`,
      120_000,
      async () => {
        // Rates need changes between scrapes.
        await load(service);
        const answers = await Promise.all(
          queries.map(async ({ title, query }) => {
            const path = `query?query=${encodeURIComponent(query)}`;
            const { result } = await ask<{ result: { value: [number, string] }[] }>(
              prometheus,
              path,
            );
            return result.some(({ value }) => value[1] !== 'NaN') ? [] : [`${title}: ${query}`];
          }),
        );
        empty = answers.flat();
        return empty.length === 0;
      },
      500,
    );

    const firing = async () => {
      const { alerts } = await ask<{ alerts: { labels: { alertname: string }; state: string }[] }>(
        prometheus,
        'alerts',
      );
      return alerts.filter(({ state }) => state === 'firing').map(({ labels }) => labels.alertname);
    };
    assert.deepEqual(await firing(), []);
    const { key } = await service.keyFor();
    renameSync(service.databasePath, `${service.databasePath}.gone`);
    assert.equal((await service.call(key, 'POST', '/traces', { model: 'm' })).status, 503);
    await eventually('the alert', 120_000, async () =>
      (await firing()).includes('TraceTallyWritesStopped'),
    );
  });

  test('the panels of the dashboard have ids of their own and do not overlap', () => {
    assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length);
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, i) => `${x + (i % w)} ${y + Math.floor(i / w)}`),
    );
    assert.equal(new Set(cells).size, cells.length);
    assert.ok(panels.every(({ gridPos: { x, w } }) => x + w <= 24));
  });
});
