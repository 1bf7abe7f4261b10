import type { Route } from '../route.ts';

/** `GET /openapi.json`: the document that the route schemas make. */
export const openapi: Route = (app) => {
  app.get('/openapi.json', { schema: { hide: true } }, async (_request, reply) =>
    reply.send(app.swagger()),
  );
};
