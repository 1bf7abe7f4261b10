import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from '../schema-builders.ts';
import { formatTimestamp } from '../../core/clock.ts';
import { hashSignInCode, isWellFormedSignInCode } from '../../core/sign-in-code.ts';
import { fail } from '../../errors.ts';
import { limits } from '../../limits.ts';
import { countFailure } from '../auth.ts';
import type { Route, RouteDeps } from '../route.ts';
import { dashboardHeader, isFromDashboard } from '../sessions.ts';
import type { SessionCaller } from '../sessions.ts';

const secretText = Type.String({ minLength: 1, maxLength: limits.envKeyCharsMax });
const KeyOrCode = Type.Object({
  key: Type.Optional(secretText),
  code: Type.Optional(secretText),
});
const Code = Type.Object({ code: secretText });

/** `none`: the user opened it directly, such as from the address bar. Clients other than browsers do not send this header. */
const ownSites = [undefined, 'same-origin', 'none'];

/** Pages of another origin could sign their visitors in to a team of their choice. */
function refuseCrossSite(
  { headers }: FastifyRequest,
  _reply: FastifyReply,
  done: () => void,
): void {
  if (!ownSites.includes(headers['sec-fetch-site'])) fail('cross_site_request');
  done();
}

/** `/session`: sign in to the dashboard with an API key or a one-time code, read the session, sign out. */
export const session: Route = (app, deps) => {
  const { gate, basePath } = deps;
  const { sessions } = gate;

  /** Only the dashboard uses these routes, so the OpenAPI document leaves them out. */
  const options = { bodyLimit: limits.signInBodyBytesMax, onRequest: [refuseCrossSite] };

  function sendCookie(request: FastifyRequest, reply: FastifyReply, value: string, lifeUs: number) {
    const path = basePath === '' ? '/' : basePath;
    const maxAgeS = Math.ceil(lifeUs / 1_000_000);
    // The browser then sends the cookie only over TLS.
    const secure = request.protocol === 'https' ? '; Secure' : '';
    reply.header(
      'set-cookie',
      `${sessions.cookieName}=${value}; Path=${path}; Max-Age=${maxAgeS}; HttpOnly; SameSite=Strict${secure}`,
    );
  }

  app.post(
    '/session',
    { ...options, schema: { hide: true, body: KeyOrCode } },
    async (request, reply) => {
      const started = await countFailure(gate, request, signIn(deps, request, request.body));
      sendCookie(request, reply, started.cookie, started.caller.endsAtUs - deps.clock());
      return reply.code(201).send(await sessionJson(deps, started.caller));
    },
  );

  app.post(
    '/session/preview',
    { ...options, schema: { hide: true, body: Code } },
    async (request, reply) => {
      const keyId = await countFailure(gate, request, findCode(deps, request.body.code));
      // No cookie is set: this only checks whether the key may start a session, and for which team.
      const { caller } = await countFailure(gate, request, sessions.start(keyId));
      return reply.send({ team: teamJson(caller) });
    },
  );

  app.get('/session', { schema: { hide: true } }, async (request, reply) => {
    // Not counted as a failed attempt: the page sends this request at every load, signed in or not.
    if (!isFromDashboard(request.headers)) {
      return fail('not_signed_in', { say: `Send the header "${dashboardHeader}: any".` });
    }
    const caller = await sessions.authenticate(request.headers, 'read');
    request.caller = caller;
    return reply.send(await sessionJson(deps, caller));
  });

  app.delete('/session', { ...options, schema: { hide: true } }, async (request, reply) => {
    // First, so that the browser is signed out even if the store fails.
    sendCookie(request, reply, '', 0);
    await sessions.end(request.headers);
    return reply.code(204).send();
  });
};

async function signIn(
  deps: RouteDeps,
  request: FastifyRequest,
  { key, code }: { key?: string; code?: string },
) {
  const { authenticator, sessions, signIns } = deps.gate;
  if ((key === undefined) === (code === undefined)) {
    const message = 'must be a JSON object with either "key" or "code"';
    return fail('invalid_input', { errors: [{ field: 'body', message }] });
  }
  const keyId =
    code === undefined
      ? (await authenticator.authenticate(`Bearer ${key}`)).keyId
      : await findCode(deps, code);
  const started = await sessions.start(keyId);
  request.caller = started.caller;
  await signIns(request);
  if (code === undefined) return started;
  // Last, so that a failed sign-in does not use up the code. Only one request can take it.
  const taken = await deps.signIns.takeSignInCode(hashSignInCode(code), deps.clock());
  return taken === null ? fail('sign_in_code_invalid') : started;
}

async function findCode({ signIns, clock }: RouteDeps, code: string): Promise<string> {
  if (!isWellFormedSignInCode(code)) return fail('sign_in_code_invalid');
  const keyId = await signIns.findSignInCode(hashSignInCode(code), clock());
  return keyId ?? fail('sign_in_code_invalid');
}

async function sessionJson({ reader }: RouteDeps, caller: SessionCaller) {
  const { teamId, scope, endsAtUs } = caller;
  // The page needs it to know which day it is for the team.
  const team = { ...teamJson(caller), time_zone: await reader.timeZone(teamId) };
  return { team, scope, expires_at: formatTimestamp(endsAtUs) };
}

function teamJson({ teamId, teamName }: SessionCaller) {
  return { id: teamId, name: teamName };
}
