import type { FastifyReply, FastifyRequest } from 'fastify';
import { fail } from '../errors.ts';

/** `none`: the user opened it directly, such as from the address bar. Clients other than browsers do not send this header. */
const ownSites = [undefined, 'same-origin', 'none'];

/** A hook that rejects requests from pages of another origin, which could sign their visitors in to a team of their choice. */
export function refuseCrossSite(
  { headers }: FastifyRequest,
  _reply: FastifyReply,
  done: () => void,
): void {
  const site = headers['sec-fetch-site'];
  if (!ownSites.includes(site)) fail('cross_site_request');
  done();
}
