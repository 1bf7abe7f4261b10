import { exactTime, relativeTime } from '../format/moment.ts';
import { useNow } from './now.ts';

/** `3 min ago`; on hover the exact time, here and in UTC with all its digits. */
export function RelativeTime({ at }: { at: string }) {
  const nowMs = useNow();
  const atMs = Date.parse(at);
  return (
    <time dateTime={at} title={`${exactTime(atMs)}\n${at}`}>
      {relativeTime(atMs, nowMs)}
    </time>
  );
}
