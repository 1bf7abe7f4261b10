import { CloseIcon } from '../parts/icons.tsx';
import { hrefOf } from '../route/route.ts';
import type { Question, Route } from '../route/route.ts';
import {
  filterNames,
  filterPairs,
  filterValueText,
  noFilters,
  withoutFilter,
} from '../view/filters.ts';

interface FilterChipsProps {
  route: Route;
  question: Question;
}

/** The filters of the view. Each has a link to the same view without it. */
export function FilterChips({ route, question }: FilterChipsProps) {
  const pairs = filterPairs(question.filters);
  if (pairs.length === 0) return null;
  return (
    <ul class="chips" aria-label="Filters">
      {pairs.map(([field, value]) => {
        const text = filterValueText(field, value);
        const left = { ...question, filters: withoutFilter(question.filters, field, value) };
        return (
          <li key={`${field} ${value}`} class="chip">
            <span class="chip-field">{filterNames[field]}</span>
            <bdi class={value === '' ? 'chip-value unset' : 'chip-value'} title={text}>
              {text}
            </bdi>
            <a
              class="chip-remove"
              href={hrefOf(route, left)}
              aria-label={`Remove the filter ${filterNames[field]}: ${text}`}
            >
              <CloseIcon />
            </a>
          </li>
        );
      })}
      {pairs.length > 1 && (
        <li>
          <a class="chips-clear" href={hrefOf(route, { ...question, filters: noFilters })}>
            Remove all
          </a>
        </li>
      )}
    </ul>
  );
}
