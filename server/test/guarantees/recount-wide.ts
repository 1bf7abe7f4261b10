/**
 * A separate program with little memory: recounts traces that are all in different groups. Argument: their number. Prints the findings
 * as JSON.
 */
import { draftTrace } from '../../src/core/trace.ts';
import { FindingList } from '../../src/tools/finding-list.ts';
import { RollupRecount } from '../../src/tools/rollup-recount.ts';

const count = Number(process.argv[2]);
using recount = new RollupRecount({ generation: 1, timeZone: 'UTC', seq: count });
for (let seq = 1; seq <= count; seq++) {
  const names = { model: `m${seq}`, feature_name: `f${seq}`, user_identifier: `u${seq}` };
  recount.add({ ...draftTrace({ ...names, latency_ms: seq }), seq, createdAtUs: seq });
}
const findings = new FindingList('findings');
await recount.compare(noRollups(), findings);
process.stdout.write(JSON.stringify(findings.sentences()));

async function* noRollups(): AsyncGenerator<never[]> {}
