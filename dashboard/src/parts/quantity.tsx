import { exactCount, shortCount } from '../format/count.ts';
import { exactDuration, shortDuration } from '../format/duration.ts';
import { exactMoney, shortMoney } from '../format/money.ts';
import { percent } from '../format/percent.ts';

interface QuantityProps {
  short: string;
  exact: string;
}

/** Short for the eye; exact on hover and for screen readers. */
export function Quantity({ short, exact }: QuantityProps) {
  if (short === exact) return <span class="quantity">{short}</span>;
  return (
    <span class="quantity" title={exact}>
      <span aria-hidden="true">{short}</span>
      <span class="visually-hidden">{exact}</span>
    </span>
  );
}

interface ValueProps {
  /** Null where it is not known. */
  value: number | null;
}

export function Count({ value }: ValueProps) {
  if (value === null) return <Unknown />;
  return <Quantity short={shortCount(value)} exact={exactCount(value)} />;
}

export function Money({ value }: ValueProps) {
  if (value === null) return <Unknown />;
  return <Quantity short={shortMoney(value)} exact={exactMoney(value)} />;
}

export function Duration({ value }: ValueProps) {
  if (value === null) return <Unknown />;
  return <Quantity short={shortDuration(value)} exact={exactDuration(value)} />;
}

export function Percent({ value }: ValueProps) {
  if (value === null) return <Unknown />;
  return <Quantity short={percent(value)} exact={percent(value)} />;
}

export function Unknown() {
  return (
    <span class="unknown">
      <span aria-hidden="true">–</span>
      <span class="visually-hidden">not known</span>
    </span>
  );
}
