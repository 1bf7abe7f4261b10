import type { BrowserContext, Request } from 'playwright-core';

/** What a visitor's browser did, seen from outside. */
export interface Watch {
  readonly requests: readonly Request[];
  /** Errors of the page, dialogs, and violations of the Content-Security-Policy. Empty if there are none. */
  readonly trouble: readonly string[];
  /** Addresses that are at none of these. */
  strangers(origins: readonly string[]): string[];
  /** Paths below the base, with their queries, of the requests to the API since a given one. */
  apiCalls(base: string, since?: number): string[];
}

/** Answers that are no success are told by the page itself; the browser's own line about them is no mistake. */
const harmless = /^Failed to load resource: /;

export async function watchContext(context: BrowserContext): Promise<Watch> {
  const requests: Request[] = [];
  const trouble: string[] = [];
  context.on('request', (request) => requests.push(request));
  context.on('weberror', (event) => trouble.push(`uncaught: ${event.error().message}`));
  context.on('console', (message) => {
    const isBad = message.type() === 'error' || message.type() === 'warning';
    if (isBad && !harmless.test(message.text())) trouble.push(`console: ${message.text()}`);
  });
  context.on('dialog', (dialog) => {
    trouble.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  await context.exposeBinding('tellViolation', (_source, words: string) =>
    trouble.push(`forbidden by policy: ${words}`),
  );
  await context.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', (event) => {
      const { tellViolation } = globalThis as unknown as { tellViolation(words: string): void };
      tellViolation(`${event.effectiveDirective} ${event.blockedURI} ${event.sample}`);
    });
  });
  return {
    requests,
    trouble,
    strangers: (origins) =>
      requests
        .map((request) => request.url())
        .filter((url) => !origins.some((origin) => url.startsWith(`${origin}/`))),
    apiCalls: (base, since = 0) =>
      requests
        .slice(since)
        .map((request) => request.url())
        .filter((url) => /\/(traces|analytics)(\/|\?|$)/.test(url) && url.startsWith(base))
        .map((url) => url.slice(base.length)),
  };
}
