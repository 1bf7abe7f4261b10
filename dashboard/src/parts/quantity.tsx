import { exactCount, shortCount } from '../format/count.ts';
import { exactDuration, shortDuration } from '../format/duration.ts';
import { exactMoney, shortMoney } from '../format/money.ts';
import { percent } from '../format/percent.ts';

interface QuantityProps {
  short: string;
  exact: string;
}

/** Shows the short form; the exact value is the tooltip and what screen readers read. */
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
  /** Null if it is not known. */
  value: number | null;
}

export function Count({ value }: ValueProps) {
  if (value === null) return <Unknown />;
  return <Quantity short={shortCount(value)} exact={exactCount(value)} />;
}

interface MoneyProps {
  usd: number;
  /** The format of a table column; `shortMoney` outside of tables. */
  format?: ((usd: number) => string) | undefined;
}

function Money({ usd, format = shortMoney }: MoneyProps) {
  return <Quantity short={format(usd)} exact={exactMoney(usd)} />;
}

interface CallCostProps extends Pick<MoneyProps, 'format'> {
  /** Null if the call was recorded without a cost. */
  usd: number | null;
}

/** The cost of one call. */
export function CallCost({ usd, format }: CallCostProps) {
  if (usd === null) return <NoCost title="This call was recorded without cost_usd." />;
  return <Money usd={usd} format={format} />;
}

interface TotalCostProps extends MoneyProps {
  calls: number;
}

/** The cost of several calls. The API reports 0 both for calls without a cost and for calls that cost nothing. */
export function TotalCost({ usd, calls, format }: TotalCostProps) {
  if (usd === 0 && calls > 0)
    return (
      <NoCost title="These calls were recorded without cost_usd, or their costs add up to 0." />
    );
  return <Money usd={usd} format={format} />;
}

function NoCost({ title }: { title: string }) {
  return (
    <span class="unknown" title={title}>
      no cost
    </span>
  );
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
