import { exact, roundHalfUp, sixDecimals } from './exact-decimal.ts';

/** The body of a POST, as a client would write it. */
export interface Sent {
  model: string;
  input?: string | null;
  output?: string | null;
  prompt_tokens?: number | null;
  completion_tokens?: number | null;
  latency_ms?: number | null;
  cost_usd?: number | null;
  status?: 'success' | 'error' | null;
  error_message?: string | null;
  feature_name?: string | null;
  user_identifier?: string | null;
  response_model?: string | null;
  started_at?: string | null;
  environment?: string | null;
  provider?: string | null;
  session_id?: string | null;
  run_id?: string | null;
  cache_read_tokens?: number | null;
  cache_write_tokens?: number | null;
  reasoning_tokens?: number | null;
  ttft_ms?: number | null;
  error_type?: string | null;
  metadata?: Record<string, string> | null;
}

/** Shown only if they were sent. */
interface Extra {
  response_model?: string;
  /** In UTC, with microseconds. */
  started_at?: string;
  environment?: string;
  provider?: string;
  session_id?: string;
  run_id?: string;
  cache_read_tokens?: number;
  cache_write_tokens?: number;
  reasoning_tokens?: number;
  ttft_ms?: number;
  error_type?: string;
  metadata?: Record<string, string>;
}

export interface Expected extends Extra {
  model: string;
  input?: string | null;
  output?: string | null;
  prompt_tokens: number | null;
  completion_tokens: number | null;
  latency_ms: number | null;
  cost_usd: number | null;
  status: string;
  error_message: string | null;
  feature_name: string | null;
  user_identifier: string | null;
  createdAtUs: number;
}

/**
 * What the service should answer, by the plainest means: a list, and a loop for every question. `total_cost_usd` is a text
 * here, as it must stand on the wire.
 */
export class TeamModel {
  /** Oldest first. */
  readonly traces: Expected[] = [];

  add(sent: Sent, wallUs: number): Expected {
    const expected: Expected = {
      model: wellFormed(sent.model),
      input: optionalText(sent.input),
      output: optionalText(sent.output),
      prompt_tokens: sent.prompt_tokens ?? null,
      completion_tokens: sent.completion_tokens ?? null,
      latency_ms: sent.latency_ms ?? null,
      cost_usd: sent.cost_usd ?? null,
      status: sent.status ?? (sent.error_message ? 'error' : 'success'),
      error_message: optionalText(sent.error_message),
      feature_name: optionalText(sent.feature_name),
      user_identifier: optionalText(sent.user_identifier),
      ...extraOf(sent),
      createdAtUs: this.#nextTime(wallUs),
    };
    this.traces.push(expected);
    return expected;
  }

  page(page: number, limit: number): Expected[] {
    return this.traces.toReversed().slice((page - 1) * limit, page * limit);
  }

  overview() {
    const { calls, averageLatency, cost, successRate, errors } = sums(this.traces);
    return {
      total_calls: calls,
      avg_latency_ms: averageLatency,
      total_cost_usd: cost,
      success_rate: successRate,
      error_count: errors,
    };
  }

  byModel() {
    return grouped(this.traces, (trace) => trace.model).map(([model, rest]) => ({
      model,
      ...rest,
    }));
  }

  byFeature() {
    const labelled = this.traces.filter((trace) => trace.feature_name !== null);
    return grouped(labelled, (trace) => trace.feature_name ?? '').map(([name, rest]) => ({
      feature_name: name,
      ...rest,
    }));
  }

  daily(nowUs: number) {
    return [6, 5, 4, 3, 2, 1, 0].map((daysAgo) => {
      const date = new Date(nowUs / 1000 - daysAgo * 86_400_000);
      const iso = date.toISOString().slice(0, 10);
      const ofDay = this.traces.filter((trace) => dateOf(trace) === iso);
      const { calls, cost, averageLatency, errors } = sums(ofDay);
      return {
        date: iso,
        label: new Intl.DateTimeFormat('en-US', {
          month: 'short',
          day: 'numeric',
          timeZone: 'UTC',
        }).format(date),
        call_count: calls,
        total_cost_usd: cost,
        avg_latency_ms: averageLatency,
        error_count: errors,
      };
    });
  }

  #nextTime(wallUs: number): number {
    const last = this.traces.at(-1)?.createdAtUs ?? 0;
    if (wallUs > last) return wallUs;
    return last - wallUs > 5_000_000 ? wallUs : last + 1;
  }
}

function extraOf(sent: Sent): Extra {
  const { started_at: startedAt, metadata } = sent;
  const extra = {
    response_model: optionalText(sent.response_model),
    started_at: startedAt && inUtc(startedAt),
    environment: optionalText(sent.environment),
    provider: optionalText(sent.provider),
    session_id: optionalText(sent.session_id),
    run_id: optionalText(sent.run_id),
    cache_read_tokens: sent.cache_read_tokens,
    cache_write_tokens: sent.cache_write_tokens,
    reasoning_tokens: sent.reasoning_tokens,
    ttft_ms: sent.ttft_ms,
    error_type: optionalText(sent.error_type),
    metadata: metadata && wellFormedEntries(metadata),
  };
  const isSet = ([, value]: [string, unknown]): boolean => value !== null && value !== undefined;
  return Object.fromEntries(Object.entries(extra).filter(isSet));
}

function inUtc(time: string): string {
  return Temporal.Instant.from(time).toString({ fractionalSecondDigits: 6 });
}

function wellFormedEntries(metadata: Readonly<Record<string, string>>): Record<string, string> {
  const entries = Object.entries(metadata).map(([name, value]) => [name, value].map(wellFormed));
  return Object.fromEntries(entries.filter(([name]) => name !== '__proto__'));
}

/** The UTC day of a call. */
function dateOf({ started_at: startedAt, createdAtUs }: Expected): string {
  const time = startedAt ?? new Date(Math.floor(createdAtUs / 1000)).toISOString();
  return time.slice(0, 10);
}

function grouped(traces: readonly Expected[], nameOf: (trace: Expected) => string) {
  const names = [...new Set(traces.map(nameOf))];
  return names
    .map((name) => {
      const { calls, averageLatency, cost, successRate } = sums(
        traces.filter((trace) => nameOf(trace) === name),
      );
      const record = {
        call_count: calls,
        avg_latency_ms: averageLatency,
        total_cost_usd: cost,
        success_rate: successRate,
      };
      return [name, record] as const;
    })
    .sort(
      ([a, x], [b, y]) =>
        y.call_count - x.call_count || Buffer.compare(Buffer.from(a), Buffer.from(b)),
    );
}

function sums(traces: readonly Expected[]) {
  const errors = traces.filter((trace) => trace.status === 'error').length;
  const latencies = traces.flatMap((trace) => trace.latency_ms ?? []);
  const costs = traces.flatMap((trace) => trace.cost_usd ?? []);
  const cost = costs.reduce((sum, usd) => sum + roundHalfUp(exact(String(usd)), 12n), 0n);
  return {
    calls: traces.length,
    errors,
    averageLatency:
      latencies.length === 0
        ? 0
        : halfUp(
            latencies.reduce((a, b) => a + BigInt(b), 0n),
            latencies.length,
          ),
    successRate:
      traces.length === 0
        ? 0
        : halfUp(BigInt(traces.length - errors) * 10_000n, traces.length) / 100,
    cost: sixDecimals(cost),
  };
}

function halfUp(dividend: bigint, divisor: number): number {
  const n = BigInt(divisor);
  const [quotient, rest] = [dividend / n, dividend % n];
  return Number(rest * 2n >= n ? quotient + 1n : quotient);
}

function optionalText(text: string | null | undefined): string | null {
  return text === null || text === undefined ? null : wellFormed(text);
}

function wellFormed(text: string): string {
  return text.replaceAll(/\p{Surrogate}/gu, '\uFFFD');
}
