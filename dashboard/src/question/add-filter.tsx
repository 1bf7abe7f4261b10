import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { useLoad } from '../live/loader.ts';
import { PlusIcon } from '../parts/icons.tsx';
import { navigation } from '../route/navigation.ts';
import { hrefOf } from '../route/route.ts';
import type { Question, Route } from '../route/route.ts';
import { useSession } from '../session/session.ts';
import { filterFields, filterNames, withFilter } from '../view/filters.ts';
import type { FilterField } from '../view/filters.ts';
import type { Asked } from './use-asked.ts';

interface AddFilterProps {
  route: Route;
  question: Question;
  asked: Asked;
}

/** A form behind a button, for values that no table on the screen shows. */
export function AddFilter({ route, question, asked }: AddFilterProps) {
  const [isOpen, setIsOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (!isOpen) return undefined;
    const onPointer = (event: PointerEvent): void => {
      if (box.current?.contains(event.target as Node) === false) setIsOpen(false);
    };
    addEventListener('pointerdown', onPointer);
    return () => removeEventListener('pointerdown', onPointer);
  }, [isOpen]);
  const close = (): void => {
    setIsOpen(false);
    button.current?.focus();
  };
  const onAdd = (field: FilterField, value: string): void => {
    close();
    const filters = withFilter(question.filters, field, value);
    navigation.go(hrefOf(route, { ...question, filters }));
  };
  return (
    <div
      ref={box}
      class="add-filter"
      onKeyDown={(event) => {
        if (event.key === 'Escape' && isOpen) close();
      }}
    >
      <button
        ref={button}
        type="button"
        class="button"
        aria-expanded={isOpen}
        onClick={() => setIsOpen(!isOpen)}
      >
        <PlusIcon />
        Filter
      </button>
      {isOpen && <FilterForm asked={asked} onAdd={onAdd} />}
    </div>
  );
}

interface FilterFormProps {
  asked: Asked;
  onAdd: (field: FilterField, value: string) => void;
}

function FilterForm({ asked, onAdd }: FilterFormProps) {
  const [field, setField] = useState<FilterField>('model');
  const [value, setValue] = useState('');
  const select = useRef<HTMLSelectElement>(null);
  const listId = useId();
  useEffect(() => select.current?.focus(), []);
  const isStatus = field === 'status';
  const onSubmit = (event: Event): void => {
    event.preventDefault();
    onAdd(field, isStatus ? value || 'error' : value);
  };
  return (
    <form class="filter-form card" onSubmit={onSubmit} aria-label="Add a filter">
      <label>
        Field
        <select
          ref={select}
          class="field select"
          value={field}
          onChange={(event) => {
            setField(event.currentTarget.value as FilterField);
            setValue('');
          }}
        >
          {filterFields.map((name) => (
            <option key={name} value={name}>
              {filterNames[name]}
            </option>
          ))}
        </select>
      </label>
      <label>
        Value
        {isStatus ? (
          <select
            class="field select"
            value={value || 'error'}
            onChange={(event) => setValue(event.currentTarget.value)}
          >
            <option value="error">Error</option>
            <option value="success">Success</option>
          </select>
        ) : (
          <input
            class="field"
            type="text"
            maxLength={255}
            autoComplete="off"
            placeholder="empty: not set"
            list={listId}
            value={value}
            onInput={(event) => setValue(event.currentTarget.value)}
          />
        )}
      </label>
      {!isStatus && <Suggestions id={listId} field={field} asked={asked} />}
      <button type="submit" class="button primary">
        Add
      </button>
    </form>
  );
}

/** Fields by which the API can list all values. */
const listedFields = [
  'model',
  'feature_name',
  'user_identifier',
  'environment',
  'provider',
  'error_type',
] as const satisfies readonly FilterField[];

/** The most frequent values in the range. */
function Suggestions({ id, field, asked }: { id: string; field: FilterField; asked: Asked }) {
  const { reads } = useSession();
  const { state } = useLoad({
    key: `${field} ${JSON.stringify(asked.criteria)}`,
    load: async (signal) => {
      const groupBy = listedFields.find((name) => name === field);
      if (groupBy === undefined) return [];
      const { [groupBy]: _own, ...filter } = asked.criteria;
      const query = { filter, groupBy, order: '-call_count', limit: 100 } as const;
      const reply = await reads.query(query, signal);
      return reply.rows.flatMap((row) => row[groupBy] ?? []);
    },
  });
  return (
    <datalist id={id}>
      {state.kind === 'ready' && state.value.map((value) => <option key={value} value={value} />)}
    </datalist>
  );
}
