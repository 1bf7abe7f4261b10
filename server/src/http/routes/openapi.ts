import { jsonContentType } from '../content-type.ts';
import type { Route } from '../route.ts';

/** `GET /openapi.json`: the document that the route schemas make. */
export const openapi: Route = (app) => {
  /** One text for all replies, however many wait to be read. */
  let document: Buffer | null = null;
  app.get('/openapi.json', { schema: { hide: true } }, async (_request, reply) => {
    document ??= Buffer.from(JSON.stringify(app.swagger()));
    return reply.type(jsonContentType).send(document);
  });
};
