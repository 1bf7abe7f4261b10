/** The API reports 0 if no call carried a latency; then the average is not known. */
export function knownLatency(averageMs: number): number | null {
  return averageMs === 0 ? null : averageMs;
}
