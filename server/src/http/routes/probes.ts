import { Failure, fail } from '../../errors.ts';
import type { Route } from '../route.ts';

/** `GET /healthz`: the process is running. `GET /readyz`: the store is responding, and the service is not stopping. */
export const probes: Route = (app, { probe, isStopping }) => {
  const options = { schema: { hide: true }, config: { ignoresQuery: true } };
  app.get('/healthz', options, async (_request, reply) => reply.send({ status: 'ok' }));
  app.get('/readyz', options, async (_request, reply) => {
    if (isStopping()) fail('store_unavailable', { say: 'The service is stopping.' });
    try {
      await probe.ping();
    } catch (cause) {
      throw cause instanceof Failure ? cause : new Failure('store_unavailable', { cause });
    }
    return reply.send({ status: 'ready' });
  });
};
