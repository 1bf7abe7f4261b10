import assert from 'node:assert/strict';
import { makeSignInCode } from '../../src/store/sign-in.ts';
import { startTestService } from '../support/service.ts';
import type { Answer, TestService, TestServiceOptions } from '../support/service.ts';
import { fromFreshAddress, jsonType, send } from './helpers.ts';

export const dashboardHeader = 'x-tracetally-dashboard';

/** A fresh one-time code for a key, made beside the server as `tracetally sign-in` does. */
export async function newCode(
  { beside }: TestService,
  keyId: string,
  nowUs = Date.now() * 1000,
): Promise<string> {
  const { code, record } = makeSignInCode(keyId, nowUs);
  await beside.addSignInCode(record, nowUs);
  return code;
}

export interface SignIn {
  body: { key?: string; code?: string };
  path?: string;
  headers?: Record<string, string>;
}

export function postSession(
  { url }: Pick<TestService, 'url'>,
  { body, path = '/session', headers = {} }: SignIn,
): Promise<Answer> {
  return send(url, {
    method: 'POST',
    path: `${new URL(url).pathname.replace(/\/$/, '')}${path}`,
    headers: { ...jsonType, ...headers },
    body: JSON.stringify(body),
  });
}

/** `name=value`, as a browser sends it back. */
export function cookieOf(answer: Answer): string {
  const [cookie] = (answer.headers.get('set-cookie') ?? '').split(';');
  assert.ok(cookie !== undefined && cookie !== '', answer.text);
  return cookie;
}

/** Signs in with a key and returns the cookie. */
export async function signIn(service: Pick<TestService, 'url'>, key: string): Promise<string> {
  const answer = await postSession(service, { body: { key } });
  assert.equal(answer.status, 201, answer.text);
  return cookieOf(answer);
}

/** Signs out, and asserts that the reply removes the cookie. */
export async function signOut(service: Pick<TestService, 'url'>, cookie: string): Promise<Answer> {
  const path = new URL(service.url).pathname.replace(/\/?$/, '/session');
  const answer = await send(service.url, { method: 'DELETE', path, headers: withSession(cookie) });
  assert.match(answer.headers.get('set-cookie') ?? '', /^tracetally-[\w-]{12}=; .*Max-Age=0;/);
  return answer;
}

/** What the dashboard sends with a read. */
export function withSession(cookie: string, team = 'any'): Record<string, string> {
  return { cookie, [dashboardHeader]: team };
}

/** A separate service for one test. */
export async function withService(
  options: TestServiceOptions,
  work: (other: TestService) => Promise<void>,
): Promise<void> {
  const other = await startTestService(options);
  try {
    await work(other);
  } finally {
    await other.stop();
  }
}

/** Reads as the dashboard does, from its own address: these tests fail more often than the limit per address allows. */
export function readWith(service: TestService, cookie: string, team = 'any'): Promise<Answer> {
  const headers = { ...fromFreshAddress(), ...withSession(cookie, team) };
  return service.call(null, 'GET', '/traces', undefined, headers);
}
