import { useState } from 'preact/hooks';
import type { QueryRest, QueryRow } from '../../../client/src/reading.ts';
import { exactCount } from '../format/count.ts';
import { ColumnNames } from '../parts/column-names.tsx';
import { CopyButton } from '../parts/copy-button.tsx';
import { NameLink } from '../parts/name-link.tsx';
import { setPriceWords } from '../parts/price-commands.ts';
import { Count } from '../parts/quantity.tsx';
import { behind, tracesHref } from '../route/route.ts';
import type { OverviewRoute } from '../route/route.ts';

interface UncostedTableProps {
  route: OverviewRoute;
  /** The most calls without a cost first. */
  rows: readonly QueryRow[];
  /** The groups that are not listed, all together. */
  other: QueryRest | null;
}

const rowsAtFirst = 8;

/** The roles are explicit because narrow screens lay out the rows as cards, and browsers then drop the table semantics. */
export function UncostedTable({ route, rows, other }: UncostedTableProps) {
  const [isWhole, setIsWhole] = useState(false);
  const isLong = rows.length > rowsAtFirst;
  const listed = isWhole ? rows : rows.slice(0, rowsAtFirst);
  return (
    <>
      <table class="table stacked-table uncosted-table" role="table">
        <caption class="visually-hidden">Calls without a cost, by model and provider</caption>
        <thead role="rowgroup">
          <tr role="row">
            <ColumnNames
              texts={['Model', 'Provider']}
              numbers={['No cost', 'Calls', 'Set price']}
            />
          </tr>
        </thead>
        <tbody role="rowgroup">
          {listed.map((row) => (
            <UncostedLine key={JSON.stringify([row.model, row.provider])} route={route} row={row} />
          ))}
          {other !== null && other.uncosted_calls > 0 && (
            <tr role="row" class="rest">
              <th role="rowheader" scope="row">
                <span class="clipped unset">other</span>
              </th>
              <td role="cell" />
              <td role="cell" class="number">
                <Count value={other.uncosted_calls} />
              </td>
              <td role="cell" class="number">
                <Count value={other.call_count} />
              </td>
              <td role="cell" />
            </tr>
          )}
        </tbody>
      </table>
      {isLong && (
        <button type="button" class="button more" onClick={() => setIsWhole(!isWhole)}>
          {isWhole ? `Show the first ${rowsAtFirst}` : `Show all ${exactCount(rows.length)}`}
        </button>
      )}
    </>
  );
}

function UncostedLine({ route, row }: { route: OverviewRoute; row: QueryRow }) {
  const { model = null, provider = null, uncosted_calls: uncosted, call_count: calls } = row;
  const name = model ?? '';
  return (
    <tr role="row">
      <th role="rowheader" scope="row">
        <NameLink route={route} field="model" value={model} />
      </th>
      <td role="cell">
        <NameLink route={route} field="provider" value={provider} />
      </td>
      <td role="cell" class="number">
        <Count value={uncosted} />
      </td>
      <td role="cell" class="number">
        <a
          class="figure-link"
          href={tracesHref({ question: behind(route, { model: name, provider }) })}
        >
          <Count value={calls} />
        </a>
      </td>
      <td role="cell" class="number">
        <CopyButton
          label={`Copy the command that sets a price for ${name}`}
          text={() => setPriceWords(name).join(' ')}
        />
      </td>
    </tr>
  );
}
