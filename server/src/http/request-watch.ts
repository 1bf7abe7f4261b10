import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Recorder, RouteCounts } from '../metrics/recorder.ts';
import type { App } from './app-type.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The requests of this route. */
    counts?: RouteCounts;
  }
}

/** Counts the requests of each route, and how long they took. Must be called before the routes are added. */
export function watchRequests(app: App, recorder: Recorder): void {
  // A path that is not known may be anything, so all of them are one route.
  const unknown = recorder.route('any', 'unknown');
  app.addHook('onRoute', (route) => {
    const method = [route.method].flat().join(',');
    route.config = { ...route.config, counts: recorder.route(method, route.url) };
  });
  app.addHook('onResponse', (request: FastifyRequest, reply: FastifyReply, done) => {
    const counts = request.is404 ? unknown : (request.routeOptions.config.counts ?? unknown);
    counts.note(reply.statusCode, performance.now() - request.startMs);
    done();
  });
}
