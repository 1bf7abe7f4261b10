import type { Lab } from './lab.ts';

/** One measured property. `value` is compared with `goal`; a row without a goal is for information only. */
export interface Finding {
  bench: string;
  what: string;
  value: number;
  /** Printed after the value, such as `× E` or `MB`. */
  unit: string;
  goal: Goal | null;
  /** The absolute figures that the value was computed from. */
  detail: string;
}

export type Goal = { atLeast: number } | { atMost: number };

export interface Bench {
  name: string;
  asks: string;
  run(lab: Lab): Promise<Finding[]>;
}

export function isMet({ value, goal }: Finding): boolean | null {
  if (goal === null) return null;
  return 'atLeast' in goal ? value >= goal.atLeast : value <= goal.atMost;
}

export function goalText(goal: Goal | null): string {
  if (goal === null) return '';
  return 'atLeast' in goal ? `≥ ${goal.atLeast}` : `≤ ${goal.atMost}`;
}
