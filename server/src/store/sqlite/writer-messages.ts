import type { ClockSource } from '../../core/clock.ts';
import type { ClockJump, TraceWrite, WriteOutcome } from '../store.ts';
import type { KeyUse } from './writer.ts';

/** What the two threads say to each other. */
export interface WriterData {
  path: string;
  clock: ClockSource;
}

export type ToWriter =
  | { kind: 'append'; ticket: number; writes: readonly TraceWrite[] }
  | { kind: 'keyUse'; use: KeyUse }
  | { kind: 'close' };

export type FromWriter =
  | { kind: 'ready' }
  | {
      kind: 'committed';
      answers: readonly { ticket: number; outcomes: readonly WriteOutcome[] }[];
      clockJumps: readonly ClockJump[];
      brokenBy: string | null;
    };
