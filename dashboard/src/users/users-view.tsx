import type { QueryReply } from '../../../client/src/reading.ts';
import { EmptyState } from '../empty/empty-state.tsx';
import { useQuery } from '../live/use-query.ts';
import { Failure } from '../parts/failure.tsx';
import { SearchForm } from '../parts/search-form.tsx';
import { LoadingWords, Skeleton } from '../parts/skeleton.tsx';
import { useStore } from '../parts/store.ts';
import { QuestionBar } from '../question/question-bar.tsx';
import { useAsked } from '../question/use-asked.ts';
import type { Asked } from '../question/use-asked.ts';
import { navigation } from '../route/navigation.ts';
import { usersHref } from '../route/route.ts';
import type { UsersRoute } from '../route/route.ts';
import { useSession } from '../session/session.ts';
import { PageHeading } from '../shell/page-heading.tsx';
import { answeredWords } from '../view/previous-period.ts';
import { UserTable } from './user-table.tsx';
import { matchingUsers, rowsOfUsers, userMeasures } from './user-rows.ts';
import type { UserRow } from './user-rows.ts';

/** Without a search, the table is not longer than people read. */
const listedMax = 100;
/** A search looks through as many as the API lists. */
const searchedMax = 1_000;

/** Who causes the costs, the calls and the errors. */
export function UsersView({ route }: { route: UsersRoute }) {
  const { pulse } = useSession();
  const { overview } = useStore(pulse.state);
  const asked = useAsked(route);
  const { search, order } = route;
  const listed = {
    filter: asked.criteria,
    groupBy: 'user_identifier',
    order: `-${userMeasures[order]}`,
    limit: search === '' ? listedMax : searchedMax,
  } as const;
  const users = useQuery(listed, asked.version);
  const reply = users.state.kind === 'ready' ? users.state.value : null;
  const rows = reply && matchingUsers(rowsOfUsers(reply), search);
  const exact = useExact(route, asked, reply, rows);
  if (overview?.total_calls === 0) return <EmptyState />;
  return (
    <>
      <PageHeading title="Users">
        <p class="muted">{reply && answeredWords(reply)}</p>
      </PageHeading>
      <QuestionBar route={route} asked={asked}>
        <SearchForm
          text={search}
          label="Search users"
          placeholder="Search users"
          onSearch={(text) => navigation.go(usersHref({ ...route, search: text }))}
        />
      </QuestionBar>
      {users.state.kind === 'failed' && <Failure error={users.state.error} onRetry={users.retry} />}
      {users.state.kind === 'loading' && (
        <>
          <LoadingWords />
          <div class="card">
            <Skeleton rows={12} class="table-skeleton" />
          </div>
        </>
      )}
      {reply !== null && rows !== null && (
        <UserTable route={route} rows={[...rows, ...exact]} reply={reply} />
      )}
    </>
  );
}

/** A complete identifier finds its user even if many others come first. */
function useExact(
  { search, question }: UsersRoute,
  { criteria, version }: Asked,
  reply: QueryReply | null,
  rows: readonly UserRow[] | null,
): readonly UserRow[] {
  const isUnlisted =
    search !== '' && rows !== null && rows.length === 0 && (reply?.other.length ?? 0) > 0;
  const isOpen = isUnlisted && question.filters.user_identifier === undefined;
  const filter = { ...criteria, user_identifier: search };
  const { state } = useQuery(isOpen ? { filter, groupBy: 'user_identifier' } : null, version);
  return isOpen && state.kind === 'ready' ? rowsOfUsers(state.value) : [];
}
