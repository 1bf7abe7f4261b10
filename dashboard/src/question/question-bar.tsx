import type { ComponentChildren } from 'preact';
import { useStore } from '../parts/store.ts';
import { navigation } from '../route/navigation.ts';
import { hrefOf } from '../route/route.ts';
import type { OverviewRoute, TracesRoute, UsersRoute } from '../route/route.ts';
import { useSession } from '../session/session.ts';
import { AddFilter } from './add-filter.tsx';
import { FilterChips } from './filter-chips.tsx';
import { RangePicker } from './range-picker.tsx';
import type { Asked } from './use-asked.ts';

interface QuestionBarProps {
  route: OverviewRoute | UsersRoute | TracesRoute;
  asked: Asked;
  /** Further controls of the view. */
  children?: ComponentChildren;
}

/** What the view is about: its range and its filters. */
export function QuestionBar({ route, asked, children }: QuestionBarProps) {
  const { question } = route;
  const zone = useStore(useSession().timeZone);
  return (
    <div class="question-bar" role="group" aria-label="Range and filters">
      <RangePicker
        range={asked.range}
        onChange={(range) => navigation.go(hrefOf(route, { ...question, range }))}
      />
      {children}
      <AddFilter route={route} question={question} asked={asked} />
      <FilterChips route={route} question={question} />
      <p class="zone" title="Days and hours are those of the team's time zone.">
        Time zone: {zone}
      </p>
    </div>
  );
}
