import { Failure, fail } from '../../errors.ts';
import type { Route } from '../route.ts';

/** `GET /readyz`: the store answers, and the service is not about to stop. */
export const readyz: Route = (app, { probe, isStopping }) => {
  const options = { schema: { hide: true }, config: { ignoresQuery: true } };
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
