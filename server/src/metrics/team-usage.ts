import { costOf } from '../core/trace-cost.ts';
import type { Trace } from '../core/trace.ts';

export interface Usage {
  traces: number;
  dollars: number;
}

/** Adds up what each team has stored since the start. Teams past the first `teamsMax` share one sum, so that the number of series is bounded. */
export class TeamUsage {
  readonly #teamsMax: number;
  readonly #byTeam = new Map<string, Usage>();
  readonly #others: Usage = { traces: 0, dollars: 0 };

  constructor(teamsMax: number) {
    this.#teamsMax = teamsMax;
  }

  add(teamId: string, traces: readonly Trace[]): void {
    const usage = this.#of(teamId);
    usage.traces += traces.length;
    for (const trace of traces) {
      const cost = costOf(trace);
      if (cost !== null) usage.dollars += cost.micros / 1e6 + cost.picos / 1e12;
    }
  }

  get teams(): ReadonlyMap<string, Usage> {
    return this.#byTeam;
  }

  /** Null if no team is past the limit. */
  get others(): Usage | null {
    return this.#others.traces === 0 ? null : this.#others;
  }

  #of(teamId: string): Usage {
    const known = this.#byTeam.get(teamId);
    if (known) return known;
    if (this.#byTeam.size >= this.#teamsMax) return this.#others;
    const usage = { traces: 0, dollars: 0 };
    this.#byTeam.set(teamId, usage);
    return usage;
  }
}
