import { useRef } from 'preact/hooks';
import type { Criteria } from '../api/reads.ts';
import { useNow } from '../parts/now.ts';
import { useStore } from '../parts/store.ts';
import { rangeOf } from '../route/route.ts';
import type { Question, Route } from '../route/route.ts';
import { useSession } from '../session/session.ts';
import { criteriaOf } from '../view/filters.ts';
import { localMs } from '../view/local-time.ts';
import { rangeParameters } from '../view/range.ts';
import type { Range } from '../view/range.ts';

export interface Asked {
  range: Range;
  /** The range and the filters, as the API takes them. */
  criteria: Criteria;
  /** Changes when the answers may change: with every new trace, and when a new day or hour begins. Null before it is known. */
  version: string | null;
  /** When it is asked. It stands still while updates are paused, so that a new hour sends no request. */
  nowMs: number;
}

const hourMs = 3_600_000;

/** The question of a view, as it is asked now. */
export function useAsked(route: { kind: Route['kind']; question: Question }): Asked {
  const { pulse, timeZone } = useSession();
  const { overview, isPaused } = useStore(pulse.state);
  const zone = useStore(timeZone);
  const nowMs = useTimeUnless(isPaused);
  const range = rangeOf(route);
  const hour = Math.floor(localMs(zone, nowMs) / hourMs);
  const isOfHours = range.kind === 'last' && range.unit === 'h';
  const turn = isOfHours ? hour : Math.floor(hour / 24);
  return {
    range,
    criteria: { ...rangeParameters(range, zone, nowMs), ...criteriaOf(route.question.filters) },
    version: overview === null ? null : `${turn} ${JSON.stringify(overview)}`,
    nowMs,
  };
}

function useTimeUnless(isPaused: boolean): number {
  const nowMs = useNow();
  const last = useRef(nowMs);
  if (!isPaused) last.current = nowMs;
  return last.current;
}
