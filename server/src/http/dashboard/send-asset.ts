import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Asset } from './assets.ts';

/**
 * The page shows text that anybody may have written. It runs only its own files, talks only to this server, and nobody may
 * frame it.
 */
const pageHeaders = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; " +
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'x-frame-options': 'DENY',
};

/** Sends it packed where the browser takes that, or not at all where the browser has it. */
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
