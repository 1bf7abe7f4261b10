/** The API says 0 where no call carried a latency, and nothing takes no time: then it is not known. */
export function knownLatency(averageMs: number): number | null {
  return averageMs === 0 ? null : averageMs;
}
