import type { Agent } from 'node:http';
import { callService } from './http-call.ts';

export interface Post {
  path: '/traces' | '/traces/batch';
  body: string | Buffer;
  headers?: Readonly<Record<string, string>>;
  withinMs?: number;
}

export interface PostReply {
  status: number;
  /** The ids of the traces that were acknowledged. */
  ids: string[];
  isReplay: boolean;
  /** The error code, or '' if there is none. */
  code: string;
}

interface ReplyJson {
  id?: string;
  traces?: { id: string }[];
  code?: string;
}

/** Posts traces and reads what was acknowledged. Rejects if there is no whole answer: then it is unknown what was stored. */
export async function postTraces(
  url: string,
  key: string,
  agent: Agent,
  { withinMs = 60_000, ...post }: Post,
): Promise<PostReply> {
  const { status, headers, text } = await callService(url, {
    ...post,
    method: 'POST',
    key,
    agent,
    withinMs,
  });
  const isReplay = headers['idempotent-replayed'] === 'true';
  const json = (text.startsWith('{') ? JSON.parse(text) : {}) as ReplyJson;
  const ids = status === 201 ? (json.traces ?? [json]).map(({ id }) => id ?? '') : [];
  return { status, ids, isReplay, code: json.code ?? '' };
}
