/** The API reports 0 if no call has a latency; the average is then unknown. */
export function knownLatency(averageMs: number): number | null {
  return averageMs === 0 ? null : averageMs;
}
