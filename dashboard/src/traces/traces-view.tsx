import { isNarrowed } from '../route/route.ts';
import type { TracesRoute } from '../route/route.ts';
import { FoundTracesView } from './found-traces.tsx';
import { PagedTraces } from './paged-traces.tsx';

export interface TracesViewProps {
  route: TracesRoute;
  fragment: string;
  /** The user came back with the browser's Back button and expects the list as it was. */
  isReturn: boolean;
}

/** All traces have numbered pages; a filtered list continues from a cursor. */
export function TracesView(props: TracesViewProps) {
  return isNarrowed(props.route) ? <FoundTracesView {...props} /> : <PagedTraces {...props} />;
}
