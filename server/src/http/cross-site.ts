import type { FastifyReply, FastifyRequest } from 'fastify';
import { fail } from '../errors.ts';

/** `none`: a person opened it, such as from the address bar. Other programs than browsers send no such header. */
const ownSites = [undefined, 'same-origin', 'none'];

/** A hook that refuses a request that a page of another origin made: it could sign its visitor in to a team of its choice. */
export function refuseCrossSite(
  { headers }: FastifyRequest,
  _reply: FastifyReply,
  done: () => void,
): void {
  const site = headers['sec-fetch-site'];
  if (!ownSites.includes(site)) fail('cross_site_request');
  done();
}
