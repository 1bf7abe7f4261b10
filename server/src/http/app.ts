import rateLimit from '@fastify/rate-limit';
import swagger from '@fastify/swagger';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import fastify from 'fastify';
import type { FastifyRequest } from 'fastify';
import { fail } from '../errors.ts';
import { limits } from '../limits.ts';
import type { Recorder } from '../metrics/recorder.ts';
import type { KeyDirectory } from '../store/teams-and-keys.ts';
import type { App } from './app-type.ts';
import { callerOf } from './auth.ts';
import type { Gate } from './auth.ts';
import { openAuthenticator } from './authenticator.ts';
import type { KeyInUse } from './authenticator.ts';
import { acceptBodies } from './body-parser.ts';
import { openCursors } from './cursors.ts';
import { openDecodingPool } from './decoding/decoding-pool.ts';
import type { DecodingOptions } from './decoding/decoding-pool.ts';
import { openFailureLog } from './failure-log.ts';
import { refuseAmbiguousFraming } from './framing.ts';
import { openAddressLimiter, openLimiter } from './limiter.ts';
import { watchRoutes } from './method-table.ts';
import { openapiOptions } from './openapi-document.ts';
import { sendProblem } from './problem.ts';
import { beginReply, logRequest } from './reply-headers.ts';
import { watchRequests } from './request-watch.ts';
import type { Route, RouteDeps } from './route.ts';
import { dashboard } from './routes/dashboard.ts';
import {
  getByEnvironment,
  getByFeature,
  getByModel,
  getByProvider,
  getByUser,
  getDaily,
  getOverview,
  getReport,
} from './routes/analytics.ts';
import { getTrace } from './routes/get-trace.ts';
import { getTraceCost } from './routes/get-trace-cost.ts';
import { getTraces } from './routes/get-traces.ts';
import { litellm } from './routes/litellm.ts';
import { openapi } from './routes/openapi.ts';
import { otlp } from './routes/otlp.ts';
import { postTrace } from './routes/post-trace.ts';
import { postTraceBatch } from './routes/post-trace-batch.ts';
import { probes } from './routes/probes.ts';
import { session } from './routes/session.ts';
import { components } from './schemas.ts';
import { serverOptions } from './server-options.ts';
import type { ServerSettings } from './server-options.ts';
import { openSessions } from './sessions.ts';
import { openSignalLog } from './signal-log.ts';
import { refuseUnknownParameters } from './strict-query.ts';
import { openValidators } from './validators.ts';

/** Every endpoint, under the base path. */
const routes: readonly Route[] = [
  postTrace,
  postTraceBatch,
  otlp,
  litellm,
  getTraces,
  getTrace,
  getTraceCost,
  getOverview,
  getByModel,
  getByFeature,
  getByUser,
  getByEnvironment,
  getByProvider,
  getDaily,
  getReport,
  openapi,
  session,
  dashboard,
  probes,
];

export interface AppOptions
  extends ServerSettings, Omit<RouteDeps, 'gate' | 'cursors' | 'failures' | 'signalLog'> {
  keys: KeyDirectory;
  envKey: KeyInUse | null;
  version: string;
  keyRequestsPerMinuteMax: number | null;
  authFailuresPerMinuteMax: number;
  /** Null if metrics are off. */
  recorder?: Recorder | null;
  decoding?: DecodingOptions;
}

export async function buildApp(options: AppOptions): Promise<App> {
  const { basePath, bodyBudget, replyBudget, isStopping, logger } = options;
  const { recorder = null } = options;
  const failures = openFailureLog(logger, limits, (code) => recorder?.failures.add(code));
  const app: App = fastify(
    serverOptions(options, failures),
  ).withTypeProvider<TypeBoxTypeProvider>();

  const allowedAt = watchRoutes(app);
  if (recorder) watchRequests(app, recorder);
  refuseUnknownParameters(app);
  const decoding = openDecodingPool(options.decoding);
  acceptBodies(app, { ...options, decoding });
  app.setValidatorCompiler(openValidators(options.clock, () => app.getSchemas()));
  app.setSerializerCompiler(() => JSON.stringify);
  app.setErrorHandler((error, request, reply) => sendProblem(failures, request, reply, error));
  app.setNotFoundHandler(() => fail('route_not_found'));
  app.decorateRequest('caller', null);
  app.decorateRequest('startMs', 0);
  app.decorateRequest('bodyBytes', 0);
  app.decorateRequest('bodyHolder', null);
  app.decorateRequest('bodyHash', null);
  app.addHook('onRequest', (request, reply, done) => {
    beginReply(request, reply);
    if (isStopping()) reply.header('connection', 'close');
    refuseAmbiguousFraming(request.raw);
    // Releases the bytes of the body at the end, whichever route parses it.
    if (request.method !== 'GET') bodyBudget.hold(request, reply);
    // Before the body is read: an unauthenticated caller must not make us parse megabytes for a path that does not exist.
    if (request.is404) refusePath(allowedAt(request.url));
    done();
  });
  const signalLog = openSignalLog(logger, (counts) => recorder?.noteSignals(counts));
  app.addHook('onClose', async () => {
    await decoding.close();
    replyBudget.close();
    failures.close();
    signalLog.close();
  });
  // Failed requests are logged by the error handler.
  if (logger.level === 'debug') {
    app.addHook('onResponse', (request, reply, done) => {
      if (reply.statusCode < 400) logRequest(logger, request, reply);
      done();
    });
  }
  // Expectations other than 100-continue are ignored, as HTTP allows.
  app.server.on('checkExpectation', (request, response) =>
    app.server.emit('request', request, response),
  );

  await app.register(swagger, openapiOptions(options.version, basePath));
  await app.register(rateLimit, { global: false });
  for (const schema of components) app.addSchema(schema);

  const secret = await options.signIns.sessionSecret();
  const gate = openGate(app, options, secret);
  const deps: RouteDeps = { ...options, gate, failures, signalLog, cursors: openCursors(secret) };
  await app.register(
    async (scope: App) => {
      for (const route of routes) route(scope, deps);
    },
    { prefix: basePath },
  );
  // Load balancers may not know the base path.
  if (basePath !== '') probes(app, deps);
  await app.ready();
  return app;
}

function openGate(app: App, options: AppOptions, secret: Uint8Array): Gate {
  const { keys, signIns, clock, envKey, recorder, keyRequestsPerMinuteMax: max } = options;
  const failuresMax = options.authFailuresPerMinuteMax;
  const keyGenerator = (request: FastifyRequest): string => callerOf(request).keyId;
  return {
    authenticator: openAuthenticator(keys, clock, envKey, recorder?.keyLookups.api_key),
    sessions: openSessions(keys, signIns, clock, envKey, secret, recorder?.keyLookups.session),
    failedAttempts: openAddressLimiter(app, 'too_many_failed_attempts', failuresMax),
    signIns: openLimiter(app, 'rate_limited', { max: limits.signInsPerMinuteMax, keyGenerator }),
    keyRequests: max === null ? null : openLimiter(app, 'rate_limited', { max, keyGenerator }),
  };
}

function refusePath(allowed: readonly string[]): never {
  if (allowed.length === 0) fail('route_not_found');
  return fail('method_not_allowed', { headers: { allow: allowed.join(', ') } });
}
