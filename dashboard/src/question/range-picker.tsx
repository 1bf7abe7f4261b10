import { useEffect, useState } from 'preact/hooks';
import { useNow } from '../parts/now.ts';
import { useStore } from '../parts/store.ts';
import { useSession } from '../session/session.ts';
import { addDays, isDate, todayIn } from '../view/local-time.ts';
import { localTimeOf, spanWords } from '../view/previous-period.ts';
import { isSameRange, presets } from '../view/range.ts';
import type { Range } from '../view/range.ts';

interface RangePickerProps {
  range: Range;
  onChange: (range: Range) => void;
}

/** The usual ranges, or any two dates. */
export function RangePicker({ range, onChange }: RangePickerProps) {
  const [isCustom, setIsCustom] = useState(false);
  const known = presets.findIndex((preset) => isSameRange(preset.range, range));
  const isOpen = isCustom || (known === -1 && range.kind === 'between' && isDate(range.from));
  useEffect(() => setIsCustom(false), [JSON.stringify(range)]);
  const onSelect = (value: string): void => {
    const preset = presets[Number(value)];
    setIsCustom(value === 'custom');
    if (value !== 'custom' && preset !== undefined) onChange(preset.range);
  };
  const own = known === -1 && !isCustom ? 'own' : String(known);
  return (
    <div class="range-picker">
      <label>
        <span class="visually-hidden">Time range</span>
        <select
          class="field select"
          value={isCustom ? 'custom' : own}
          onChange={(event) => onSelect(event.currentTarget.value)}
        >
          {known === -1 && <option value="own">{rangeName(range)}</option>}
          {presets.map(({ name }, index) => (
            <option key={name} value={String(index)}>
              {name}
            </option>
          ))}
          <option value="custom">Custom dates…</option>
        </select>
      </label>
      {isOpen && <DatesForm key={JSON.stringify(range)} range={range} onChange={onChange} />}
    </div>
  );
}

/** Two dates, both included. */
function DatesForm({ range, onChange }: RangePickerProps) {
  const today = todayIn(useStore(useSession().timeZone), useNow());
  const isOfDates = range.kind === 'between' && isDate(range.from) && isDate(range.to);
  const [from, setFrom] = useState(isOfDates ? range.from : addDays(today, -6));
  const [to, setTo] = useState(isOfDates ? range.to : today);
  const [problem, setProblem] = useState('');
  const onSubmit = (event: Event): void => {
    event.preventDefault();
    const words =
      isDate(from) && isDate(to)
        ? from > to && 'The first day is after the last day.'
        : 'Enter both days.';
    setProblem(words || '');
    if (!words) onChange({ kind: 'between', from, to });
  };
  return (
    <form class="dates" onSubmit={onSubmit} noValidate>
      <label>
        <span class="visually-hidden">First day</span>
        <DateField value={from} onInput={setFrom} />
      </label>
      <span aria-hidden="true">–</span>
      <label>
        <span class="visually-hidden">Last day</span>
        <DateField value={to} onInput={setTo} />
      </label>
      <button type="submit" class="button">
        Apply
      </button>
      <span class="dates-problem" role="alert">
        {problem}
      </span>
    </form>
  );
}

function DateField({ value, onInput }: { value: string; onInput: (value: string) => void }) {
  return (
    <input
      class="field"
      type="date"
      min="1970-01-01"
      max="2199-12-31"
      value={value}
      onInput={(event) => onInput(event.currentTarget.value)}
    />
  );
}

/** `Last 7 days`, `Last 12 hours`, `Nov 9 – 15, 2026`. */
export function rangeName(range: Range): string {
  const preset = presets.find((one) => isSameRange(one.range, range));
  if (preset !== undefined) return preset.name;
  if (range.kind === 'last') {
    return `Last ${range.count === 1 ? '' : `${range.count} `}${range.unit === 'h' ? 'hour' : 'day'}${range.count === 1 ? '' : 's'}`;
  }
  if (range.kind !== 'between') return '';
  const from = isDate(range.from) ? `${range.from}T00:00:00` : range.from;
  const to = isDate(range.to) ? `${addDays(range.to, 1)}T00:00:00` : range.to;
  return spanWords(localTimeOf(from), localTimeOf(to));
}
