import { cleanName } from './wrap-text.ts';

/** The fields by which SDKs, providers and runtimes describe a failure. */
interface Described {
  name?: unknown;
  code?: unknown;
  type?: unknown;
  status?: unknown;
  statusCode?: unknown;
  error?: unknown;
  data?: unknown;
  cause?: unknown;
}

const byStatus: Readonly<Record<number, string>> = {
  401: 'authentication',
  402: 'billing',
  403: 'permission',
  404: 'not_found',
  408: 'timeout',
  413: 'request_too_large',
  429: 'rate_limit',
  503: 'overloaded',
  504: 'timeout',
  529: 'overloaded',
};

/** Codes that say more than the status. */
const specificCodes = ['insufficient_quota', 'context_length_exceeded', 'content_filter'];
/** Words of single providers for what others call differently. */
const otherWords: Readonly<Record<string, string>> = {
  rate_limit_exceeded: 'rate_limit',
  api_error: 'server_error',
  server_error: 'server_error',
};

/** Types that say nothing about the failure. `system` is what an older fetch calls every failed connection. */
const sayNothing = ['error', 'system'];

const causesMax = 5;

/**
 * What kind of failure it is, in the same words for every provider: `rate_limit`, `timeout`, `connection`, `overloaded`, …; undefined if
 * neither the provider nor the SDK says.
 */
export function errorType(error: unknown): string | undefined {
  const causes = causesOf(error);
  for (const kindOf of [interruption, providerKind, connection]) {
    for (const cause of causes) {
      const kind = kindOf(cause);
      if (kind !== undefined) return kind;
    }
  }
  return undefined;
}

function causesOf(error: unknown): Described[] {
  const causes: Described[] = [];
  for (let at = error; isObject(at) && causes.length < causesMax; at = at.cause) causes.push(at);
  return causes;
}

function interruption(error: Described): string | undefined {
  if (/timeout|ETIMEDOUT/i.test(wordsOf(error))) return 'timeout';
  return /abort/i.test(namesOf(error)) ? 'aborted' : undefined;
}

function connection(error: Described): string | undefined {
  const isOne =
    /connection|ECONN|ENOTFOUND|EAI_AGAIN|EPIPE|EHOSTUNREACH|ENETUNREACH|UND_ERR_SOCKET/i.test(
      wordsOf(error),
    );
  return isOne ? 'connection' : undefined;
}

/** The name of the error and of its class: the SDKs do not set names. */
function namesOf(error: Described): string {
  return [error.name, error.constructor?.name].filter(isText).join(' ');
}

function wordsOf(error: Described): string {
  return isText(error.code) ? `${namesOf(error)} ${error.code}` : namesOf(error);
}

function providerKind(error: Described): string | undefined {
  const told = [error, ...innerErrors(error)].flatMap(({ code, type }) => [code, type]);
  const words = told.filter(isText).filter((word) => /^[a-z][a-z_]*$/.test(word));
  const specific = words.find((word) => specificCodes.includes(word));
  if (specific !== undefined) return specific;
  const { status = error.statusCode } = error;
  if (typeof status === 'number' && status >= 400) return byStatus[status] ?? otherStatus(status);
  const [word] = words.filter((each) => !sayNothing.includes(each));
  if (word === undefined) return undefined;
  return otherWords[word] ?? cleanName(word.replace(/_error$/, ''));
}

/** The body of a failed reply, as the SDKs keep it, in `error` or in `data`: at most an error in an error. */
function innerErrors({ error, data }: Described): Described[] {
  return [error, data]
    .filter(isObject)
    .flatMap((body) => (isObject(body.error) ? [body.error, body] : [body]));
}

function otherStatus(status: number): string {
  return status >= 500 ? 'server_error' : 'invalid_request';
}

function isObject(value: unknown): value is Described {
  return typeof value === 'object' && value !== null;
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}
