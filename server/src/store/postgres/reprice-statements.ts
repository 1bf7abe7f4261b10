import type { CostScope } from '../../core/reprice.ts';
import { amountColumn, costScopes, eventTime, sourceColumn } from '../reprice-sql.ts';
import { narrowColumns } from '../trace-rows.ts';

/** The statements of `reprice`. For the rules see `statements.ts`. */
const columns = ['seq', 'created_at_us', ...narrowColumns].join(', ');

/** The traces of a window: $2 and $3 bound the sequence, $4 is the model, $5 and $6 bound the time; null for no bound. */
function readCosts(scope: CostScope): string {
  return `
    select ${columns} from traces
    where team_id = $1 and seq > $2 and seq <= $3 and ${costScopes[scope]}
      and ($4::text is null or model = $4) and ($5::bigint is null or ${eventTime} >= $5)
      and ($6::bigint is null or ${eventTime} < $6)
    order by seq limit $7`;
}

export const readCostStatements: Readonly<Record<CostScope, string>> = {
  uncosted: readCosts('uncosted'),
  computed: readCosts('computed'),
  all: readCosts('all'),
};

export const ofRepricing = {
  changeCosts: `
    update traces t set ${amountColumn} = u.amount, ${sourceColumn} = u.source,
      cost_micros = u.micros, cost_picos = u.picos
    from unnest($2::bigint[], $3::double precision[], $4::text[], $5::bigint[], $6::integer[])
      as u(seq, amount, source, micros, picos)
    where t.team_id = $1 and t.seq = u.seq`,
};
