import type { CostPart, CostPrice, TraceCost } from '../../../client/src/reading.ts';
import { exactCount } from '../format/count.ts';
import { alignedMoney, costDecimalsMax, decimalsOf, exactMoney } from '../format/money.ts';
import { ColumnNames } from '../parts/column-names.tsx';

interface CostFormulaProps {
  cost: TraceCost;
  totalName: string;
  caption: string;
}

/** Tokens times prices, and their sum. The roles are explicit because narrow screens lay out the rows as cards. */
export function CostFormula({ cost, totalName, caption }: CostFormulaProps) {
  const { price, computed_usd: total } = cost;
  if (total === null) return null;
  const parts = orderedParts(cost);
  const amounts = parts.map(({ usd }) => usd);
  const format = alignedMoney([...amounts, total]);
  const isRounded = amounts.some((usd) => decimalsOf(usd) > costDecimalsMax);
  return (
    <>
      {price !== undefined && <PriceWords price={price} parts={parts} />}
      <div class="table-card">
        <table class="table stacked-table cost-formula" role="table">
          <caption class="visually-hidden">{caption}</caption>
          <thead role="rowgroup">
            <tr role="row">
              <ColumnNames texts={['Tokens']} numbers={['Count', 'Per million', 'Cost']} />
            </tr>
          </thead>
          <tbody role="rowgroup">
            {parts.map((part) => (
              <tr key={part.kind} role="row">
                <th role="rowheader" scope="row">
                  {partName(part, parts)}
                </th>
                <td role="cell" class="number">
                  {exactCount(part.count)}
                </td>
                <td role="cell" class="number">
                  <span aria-hidden="true">× </span>
                  {exactMoney(part.price_usd)}
                  {part.kind === 'request' && ' each'}
                </td>
                <td role="cell" class="number">
                  {format(part.usd)}
                </td>
              </tr>
            ))}
            <tr role="row" class="cost-total">
              <th role="rowheader" scope="row">
                {totalName}
                {isRounded && (
                  <span class="muted small"> rounded to {costDecimalsMax} decimals</span>
                )}
              </th>
              <td role="cell" />
              <td role="cell" />
              <td role="cell" class="number">
                {isRounded ? exactMoney(total) : format(total)}
              </td>
            </tr>
          </tbody>
        </table>
      </div>
    </>
  );
}

/** `(200 × $2.50 + 100 × $10.00) ÷ 1,000,000 = $0.0015`. */
export function shortFormula(cost: TraceCost): string {
  const parts = orderedParts(cost);
  const products = parts
    .filter(({ kind }) => kind !== 'request')
    .map(({ count, price_usd: price }) => `${exactCount(count)} × ${exactMoney(price)}`);
  const fees = parts.filter(({ kind }) => kind === 'request').map(({ usd }) => exactMoney(usd));
  const tokens = products.length === 0 ? [] : [`(${products.join(' + ')}) ÷ 1,000,000`];
  const sum = [...tokens, ...fees].join(' + ') || '0 tokens';
  return `${sum} = ${exactMoney(cost.computed_usd ?? 0)}`;
}

/** The input before the output, each with its parts. */
function orderedParts({ parts }: TraceCost): CostPart[] {
  const order = Object.keys(kinds);
  return parts.toSorted((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind));
}

/** Where the prices come from. */
function PriceWords({ price, parts }: { price: CostPrice; parts: readonly CostPart[] }) {
  const { source, provider, model, team_id: team, from } = price;
  const above = Math.max(...parts.map((part) => part.above_input_tokens ?? 0));
  const tier = above > 0 ? `, for calls with more than ${exactCount(above)} input tokens` : '';
  const rest = `${from === null ? '' : `, from ${from} on`}${tier}`;
  return (
    <p>
      {source === 'list' ? (
        <>
          Prices of <bdi class="breaking name">{model}</bdi> from <bdi>{provider}</bdi> in the price
          list of the server{rest}.
        </>
      ) : (
        <>
          Your own prices of <bdi class="breaking name">{model}</bdi>, for{' '}
          {team === null ? 'all teams' : 'this team'}
          {rest}.
        </>
      )}
    </p>
  );
}

type Kind = CostPart['kind'];

const kinds: Record<Kind, { name: string; partOf?: Kind }> = {
  input: { name: 'Input' },
  cache_read: { name: 'Input read from the cache', partOf: 'input' },
  cache_write: { name: 'Input written to the cache', partOf: 'input' },
  cache_write_1h: { name: 'Input written to the cache for an hour', partOf: 'input' },
  input_audio: { name: 'Audio input', partOf: 'input' },
  output: { name: 'Output' },
  output_audio: { name: 'Audio output', partOf: 'output' },
  reasoning: { name: 'Output for reasoning', partOf: 'output' },
  request: { name: 'Request' },
};

/** Tokens that have a price of their own are not counted in the input and output. */
function partName({ kind }: CostPart, parts: readonly CostPart[]): string {
  const { name } = kinds[kind];
  const isRest = parts.some((other) => kinds[other.kind].partOf === kind);
  return isRest ? `Other ${name.toLowerCase()}` : name;
}
