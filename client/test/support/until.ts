import { setTimeout as sleep } from 'node:timers/promises';

/** Waits until the condition holds; throws if it does not within two minutes, which only prevents a hang. */
export async function until(what: string, holds: () => boolean): Promise<void> {
  const deadlineMs = performance.now() + 120_000;
  while (!holds()) {
    if (performance.now() > deadlineMs) throw new Error(`Timed out: ${what}`);
    await sleep(2);
  }
}
