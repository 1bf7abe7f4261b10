import type { Route } from '../route.ts';

/** `GET /healthz`: the process is running. */
export const healthz: Route = (app) => {
  app.get(
    '/healthz',
    { schema: { hide: true }, config: { ignoresQuery: true } },
    async (_request, reply) => reply.send({ status: 'ok' }),
  );
};
