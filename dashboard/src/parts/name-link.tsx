import { hrefOf } from '../route/route.ts';
import type { Question, Route } from '../route/route.ts';
import { filterNames, notSet, onlyFilter } from '../view/filters.ts';
import type { FilterField } from '../view/filters.ts';

interface NameLinkProps {
  /** The view that is narrowed. */
  route: Route & { question: Question };
  field: FilterField;
  /** Null: calls without a value. */
  value: string | null;
}

/** A name that narrows the view to its calls. Names are recorded by apps, so they may be hostile text in any direction. */
export function NameLink({ route, field, value }: NameLinkProps) {
  const filters = onlyFilter(route.question.filters, field, value);
  const name = value ?? notSet;
  return (
    <a
      class={value === null ? 'name-link clipped unset' : 'name-link clipped'}
      href={hrefOf(route, { ...route.question, filters })}
      title={`${name}\nShow only this ${filterNames[field].toLowerCase()}`}
    >
      <bdi>{name}</bdi>
    </a>
  );
}
