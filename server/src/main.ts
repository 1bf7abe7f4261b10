import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises';
import type { FastifyBaseLogger } from 'fastify';
import { defaultTeam, serverUrl } from './config.ts';
import type { Config } from './config.ts';
import { hashKey } from './core/api-key.ts';
import { openClock } from './core/clock.ts';
import type { Clock, ClockSource } from './core/clock.ts';
import { OperatorError } from './errors.ts';
import { openBodyBudget } from './http/body-budget.ts';
import { readPage } from './http/dashboard/assets.ts';
import { listen } from './http/listen.ts';
import type { Listening } from './http/listen.ts';
import { serveMetrics } from './http/metrics-server.ts';
import { openReplyBudget } from './http/reply-budget.ts';
import type { App } from './http/app-type.ts';
import { envKeyId } from './http/authenticator.ts';
import type { KeyInUse } from './http/authenticator.ts';
import { Admission } from './ingest/admission.ts';
import { openPricing } from './ingest/pricing.ts';
import { WaitingBudget } from './ingest/waiting-budget.ts';
import { dashboardFolder } from './installation.ts';
import { limits } from './limits.ts';
import { openLogSink, openLogger, stderrText } from './log.ts';
import type { LogStream } from './log.ts';
import { Recorder } from './metrics/recorder.ts';
import type { Readings } from './metrics/exposition.ts';
import { openStore } from './store/open-store.ts';
import { makeSignInCode } from './store/sign-in.ts';
import type { SignInDirectory } from './store/sign-in.ts';
import type { RollFailure, StoreEvents } from './store/store.ts';
import { makeKey } from './store/teams-and-keys.ts';
import type { KeyDirectory, TeamDirectory } from './store/teams-and-keys.ts';
import { version } from './version.ts';

export interface Service {
  /** The URL it listens on, including the base path. */
  url: string;
  /** Where the metrics are; null if they are not served. */
  metricsUrl: string | null;
  /** Created if the store has no teams yet, otherwise null. The key is available only here; the code opens the dashboard once. */
  first: { key: string; signInCode: string } | null;
  /** False if the dashboard has not been built. */
  hasDashboard: boolean;
  logger: FastifyBaseLogger;
  /** With notice, /readyz fails for a moment while requests are still served, so that load balancers stop sending new ones. */
  stop(options: { notice: boolean }): Promise<void>;
}

/** Starts everything in order; `stop` does the reverse. */
export async function startService(
  config: Config,
  clockSource: ClockSource = { kind: 'system' },
  logStream: LogStream = openLogSink(stderrText()),
): Promise<Service> {
  const logger = openLogger(config.logLevel, logStream);
  const clock = openClock(clockSource);
  let isStopping = false;
  // Closed at the end of this function if the start fails; otherwise `stop` closes it.
  await using started = new AsyncDisposableStack();

  const recorder = config.metricsListen ? new Recorder(config.metricsTeams) : null;
  const opening = openStore(config.database, {
    clock: clockSource,
    role: 'server',
    ...storeEvents(logger, recorder),
  });
  // Loaded while the store's thread starts.
  const loading = nextTurn().then(() => import('./http/app.ts'));
  // It is awaited below; if the store cannot be opened, that is the error to report.
  loading.catch(() => {});
  const store = await opening;
  started.defer(() => store.close());
  const waiting = new WaitingBudget();
  const writes = new Admission(store, waiting, recorder);
  started.defer(() => writes.drain());
  const pricing = openPricing(store, clock);
  if (config.priceMissingCosts) await pricing.load();
  const page = readPage(dashboardFolder);
  const bodyBudget = openBodyBudget(limits.bodiesBytesMax);
  const replyBudget = openReplyBudget(limits.repliesBytesMax);
  const { buildApp } = await loading;
  const app = await buildApp({
    reader: store,
    keys: store,
    signIns: store,
    probe: store,
    writes,
    pricing,
    priceMissingCosts: config.priceMissingCosts,
    bodyBudget,
    replyBudget,
    recorder,
    clock,
    logger,
    version,
    envKey: await acceptEnvKey(store, config.envKey, clock),
    basePath: config.basePath,
    page,
    bodyBytesMax: config.bodyBytesMax,
    trustProxy: config.trustProxy ?? false,
    keyRequestsPerMinuteMax: config.keyRequestsPerMinuteMax,
    authFailuresPerMinuteMax: limits.authFailuresPerMinuteMax,
    isStopping: () => isStopping,
  });
  let listening: Listening | null = null;
  started.defer(() => closeApp(app, listening));
  listening = await listen(app, config.host, config.port).catch(explainListen(config, '--port'));
  const url = serverUrl({ ...config, port: listening.port });
  logger.info(`version ${version} is listening on ${url}`);
  const metrics = await startMetrics(config, recorder, logger, {
    version,
    store: config.database.kind,
    bodyBytes: () => bodyBudget.usedBytes,
    replyBytes: () => replyBudget.usedBytes,
    waiting: () => waiting,
    teamName: async (id) => (await store.findTeam(id))?.name ?? null,
  });
  if (metrics) started.defer(() => metrics.stop());
  // Last, when nothing else can fail: a key that was created but never shown would be lost.
  const first = await makeFirstAccess(store, clock);

  const running = started.move();
  return {
    url,
    metricsUrl: metrics?.url ?? null,
    first,
    hasDashboard: page !== null,
    logger,
    async stop({ notice }) {
      isStopping = true;
      logger.info('stopping');
      try {
        if (notice) await delay(limits.stopNoticeMs);
        await running.disposeAsync();
        logger.info('stopped');
      } finally {
        await logStream.flush?.();
      }
    },
  };
}

/** Metrics need a library, which is loaded only here. */
async function startMetrics(
  { metricsListen: address, metricsToken }: Config,
  recorder: Recorder | null,
  logger: FastifyBaseLogger,
  readings: Readings,
): Promise<{ url: string; stop(): Promise<void> } | null> {
  if (address === null || recorder === null) return null;
  const { openExposition } = await import('./metrics/exposition.ts');
  const exposition = openExposition(recorder, readings);
  const server = await serveMetrics(exposition, address, metricsToken).catch(
    explainListen(address, '--metrics-listen'),
  );
  const url = serverUrl({ host: address.host, port: server.port, basePath: '/metrics' });
  logger.info(`metrics are served at ${url}`);
  return { url, stop: () => server.stop() };
}

/** Counts what happens in the store. Without a recorder, the store does not report it. */
function storeEvents(logger: FastifyBaseLogger, recorder: Recorder | null): StoreEvents {
  const logged = logStoreEvents(logger);
  if (recorder === null) return logged;
  return {
    ...logged,
    onCommit: (commit) => recorder.noteCommit(commit),
    onRoll: (report) => recorder.noteRoll(report),
    onRollFailed(failure) {
      recorder.rolls.failures += 1;
      logged.onRollFailed?.(failure);
    },
    onBroken(reason) {
      recorder.isBroken = true;
      logged.onBroken?.(reason);
    },
  };
}

/** Logs what operators should know about the store. */
function logStoreEvents(logger: FastifyBaseLogger): StoreEvents {
  return {
    onClockJump: ({ teamId, aheadUs }) =>
      logger.warn(
        { team_id: teamId, ahead_us: aheadUs },
        'the last trace is ahead of the clock; the clock may have jumped back',
      ),
    onBroken: (reason) => logger.fatal({ reason }, 'writes have stopped; restart the server'),
    onRollFailed: logRollFailures(logger),
  };
}

/** With a full disk it fails for every team, so only the first failures of an interval are logged. */
function logRollFailures(logger: FastifyBaseLogger): (failure: RollFailure) => void {
  let intervalStartMs = -Infinity;
  let lines = 0;
  let notLogged = 0;
  return ({ teamId, reason }) => {
    if (performance.now() - intervalStartMs >= limits.failureLogIntervalMs) {
      intervalStartMs = performance.now();
      lines = 0;
    }
    if (lines === limits.failureLinesMax) {
      notLogged += 1;
      return;
    }
    lines += 1;
    logger.error(
      { team_id: teamId, reason, not_logged: notLogged },
      'rollups could not be updated; it is tried again, and answers stay complete',
    );
    notLogged = 0;
  };
}

/** Requests in progress finish. A connection is closed as soon as it is idle, even with keep-alive. */
async function closeApp(app: App, listening: Listening | null): Promise<void> {
  const sweep = setInterval(() => app.server.closeIdleConnections(), limits.stopSweepMs);
  // A request that never arrives completely must not delay the stop: Node no longer checks request timeouts at this point.
  const patience = setTimeout(() => app.server.closeAllConnections(), limits.stopGraceMs);
  await Promise.all([app.close(), listening?.stop()]);
  clearInterval(sweep);
  clearTimeout(patience);
}

async function acceptEnvKey(
  store: TeamDirectory,
  key: string | null,
  clock: Clock,
): Promise<KeyInUse | null> {
  if (key === null) return null;
  const { team } = await store.ensureTeam(defaultTeam, clock());
  return {
    id: envKeyId,
    hash: hashKey(key),
    teamId: team.id,
    teamName: team.name,
    scope: 'full',
    expiresAtUs: null,
    revokedAtUs: null,
  };
}

/** Creates the first team and its first key if the store has no teams. */
async function makeFirstAccess(
  store: TeamDirectory & KeyDirectory & SignInDirectory,
  clock: Clock,
): Promise<Service['first']> {
  const nowUs = clock();
  if ((await store.teams(nowUs)).length > 0) return null;
  const { team } = await store.ensureTeam(defaultTeam, nowUs);
  const { key, record } = makeKey({ name: 'first key', scope: 'full', nowUs, expiresAtUs: null });
  await store.createKey(team.id, record);
  const { code, record: codeRecord } = makeSignInCode(record.id, nowUs);
  await store.addSignInCode(codeRecord, nowUs);
  return { key, signInCode: code };
}

function explainListen({ host, port }: { host: string; port: number }, flag: string) {
  return (error: NodeJS.ErrnoException): never => {
    if (error.code === 'EADDRINUSE') {
      throw new OperatorError(`Port ${port} on ${host} is in use. Choose another with ${flag}.`);
    }
    throw new OperatorError(`Cannot listen on ${host}, port ${port}: ${error.message}.`);
  };
}
