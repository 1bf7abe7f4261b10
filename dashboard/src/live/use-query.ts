import type { QueryReply } from '../../../client/src/reading.ts';
import type { Query } from '../api/reads.ts';
import { useSession } from '../session/session.ts';
import { useLoad } from './loader.ts';
import type { Loading } from './loader.ts';

/** The answer to one question of `/analytics/query`. Nothing is asked while the query or the version is null. */
export function useQuery(query: Query | null, version: unknown): Loading<QueryReply> {
  const { reads, timeZone } = useSession();
  return useLoad({
    key: JSON.stringify(query),
    version: query === null ? null : version,
    load: async (signal) => {
      const reply = await reads.query(query ?? {}, signal);
      timeZone.set(reply.time_zone);
      return reply;
    },
  });
}
