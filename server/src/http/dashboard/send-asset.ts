import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Asset } from './assets.ts';

/** The page shows untrusted text, so it may run only its own files, connect only to this server, and never be shown in a frame. */
const pageHeaders = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; " +
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'x-frame-options': 'DENY',
};

/** Sends the file compressed if the browser accepts that, or a 304 if the browser already has it. */
export function sendAsset(
  request: FastifyRequest,
  reply: FastifyReply,
  asset: Asset,
  cacheControl: string,
): FastifyReply {
  reply
    .headers(pageHeaders)
    .header('cache-control', cacheControl)
    .header('vary', 'accept-encoding')
    .header('etag', asset.etag);
  if (request.headers['if-none-match'] === asset.etag) return reply.code(304).send();
  reply.type(asset.contentType);
  const encoding = encodingFor(request.headers['accept-encoding'] ?? '', asset);
  if (encoding === null) return reply.send(asset.plain);
  return reply.header('content-encoding', encoding).send(asset[encoding]);
}

function encodingFor(accepted: string | string[], asset: Asset): 'br' | 'gzip' | null {
  const names = String(accepted)
    .split(',')
    .filter((part) => !/;\s*q=0(\.0*)?\s*$/.test(part))
    .map((part) => part.split(';', 1)[0]?.trim().toLowerCase());
  return (['br', 'gzip'] as const).find((name) => names.includes(name) && asset[name]) ?? null;
}
