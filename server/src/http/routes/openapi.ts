import { jsonContentType } from '../content-type.ts';
import type { Route } from '../route.ts';

/** `GET /openapi.json`: the document generated from the route schemas. */
export const openapi: Route = (app) => {
  /** Shared by all replies, so that unread ones use no extra memory. */
  let document: Buffer | null = null;
  app.get('/openapi.json', { schema: { hide: true } }, async (_request, reply) => {
    document ??= Buffer.from(JSON.stringify(app.swagger()));
    return reply.type(jsonContentType).send(document);
  });
};
