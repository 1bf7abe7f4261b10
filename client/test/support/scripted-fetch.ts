/** A request as the client made it. */
export interface SeenRequest {
  url: string;
  method: string;
  headers: Headers;
  body: Uint8Array;
  atMs: number;
}

/**
 * What happens to a request: an answer of our own, an error, the real server (`pass`), or the real server whose reply gets lost
 * (`lose-reply`), or nothing at all (`hang`).
 */
export type Step = Response | Error | 'pass' | 'lose-reply' | 'hang';

export interface ScriptedFetch {
  fetch: typeof globalThis.fetch;
  seen: SeenRequest[];
}

/** A fetch that follows the script for its first requests and is the real one after that. */
export function scriptedFetch(
  script: readonly Step[] | ((request: SeenRequest, index: number) => Step | Promise<Step>),
): ScriptedFetch {
  const seen: SeenRequest[] = [];
  const fetch: typeof globalThis.fetch = async (input, init) => {
    const request = {
      url: input as string,
      method: init?.method ?? 'GET',
      headers: new Headers(init?.headers),
      body: (init?.body ?? new Uint8Array()) as Uint8Array,
      atMs: performance.now(),
    };
    seen.push(request);
    const index = seen.length - 1;
    const step =
      typeof script === 'function' ? await script(request, index) : (script[index] ?? 'pass');
    if (step instanceof Response) return step.clone();
    if (step instanceof Error) throw step;
    if (step === 'hang') return new Promise<Response>(() => {});
    const response = await globalThis.fetch(input, init);
    if (step === 'pass') return response;
    await response.arrayBuffer();
    throw new TypeError('fetch failed', { cause: new Error('the reply was lost') });
  };
  return { fetch, seen };
}

/** A problem document as the server sends it. */
export function problem(
  status: number,
  code: string,
  headers: Record<string, string> = {},
  errors?: { field: string; message: string }[],
): Response {
  const detail = `Said with ${code}.`;
  const body = { type: 'urn:x', title: code, status, detail, code, request_id: 'req-1', errors };
  return new Response(JSON.stringify(body), {
    status,
    headers: { 'content-type': 'application/problem+json', ...headers },
  });
}

/** The traces in a batch, whether it was packed or not. */
export async function tracesIn({ headers, body }: SeenRequest): Promise<Record<string, unknown>[]> {
  let text = new TextDecoder().decode(body);
  if (headers.get('content-encoding') === 'gzip') {
    const stream = new Blob([body as Uint8Array<ArrayBuffer>]).stream();
    text = await new Response(stream.pipeThrough(new DecompressionStream('gzip'))).text();
  }
  return (JSON.parse(text) as { traces: Record<string, unknown>[] }).traces;
}
