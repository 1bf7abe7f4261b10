import { tablesByTeam } from '../../src/store/postgres/tables.ts';

/**
 * Reads a statement's parse tree and tells which references to distributed tables are not bound to the team, `team_id = $1`. Such a
 * statement would run on every shard.
 */
type Node = Record<string, unknown>;

export const distributedTables: ReadonlySet<string> = new Set(tablesByTeam);

/** The names of the tables that are not bound; empty if all are. */
export function unboundTables(tree: unknown): string[] {
  const all = new Set<Node>();
  const bound = new Set<Node>();
  visit(tree, (node) => {
    if (isTable(node)) all.add(node);
    for (const table of boundIn(node)) bound.add(table);
  });
  return [...all].filter((table) => !bound.has(table)).map((table) => String(table['relname']));
}

/** What kinds of statements a text holds, such as `SelectStmt`. */
export function statementKinds(tree: unknown): string[] {
  const { stmts } = tree as { stmts: { stmt: Node }[] };
  return stmts.flatMap(({ stmt }) => Object.keys(stmt));
}

function visit(value: unknown, look: (node: Node) => void): void {
  if (typeof value !== 'object' || value === null) return;
  if (!Array.isArray(value)) look(value as Node);
  for (const part of Object.values(value)) visit(part, look);
}

function isTable(node: Node): boolean {
  return typeof node['relname'] === 'string' && distributedTables.has(node['relname']);
}

/** The tables that this very node binds, not those of queries inside it. */
function boundIn(node: Node): Node[] {
  if (node['cols'] && node['relation']) return boundTarget(node);
  if (node['quals'] && node['rarg']) return boundByJoin(node);
  if (!node['whereClause']) return [];
  const tables = [node['relation'], node['fromClause'], node['usingClause']].flatMap(tablesIn);
  const names = equalToTeam(node['whereClause']);
  return tables.filter(
    (table) => names.includes(nameOf(table)) || (tables.length === 1 && names.includes('')),
  );
}

/** The right side of a join, if its condition says `team_id = $1` of it. */
function boundByJoin({ rarg, quals }: Node): Node[] {
  const names = equalToTeam(quals);
  return tablesIn(rarg).filter((table) => names.includes(nameOf(table)));
}

/** The tables of a FROM, through joins but not into subqueries. */
function tablesIn(part: unknown): Node[] {
  if (Array.isArray(part)) return part.flatMap(tablesIn);
  if (typeof part !== 'object' || part === null) return [];
  const node = part as Node;
  if (isTable(node)) return [node];
  if (node['RangeVar']) return tablesIn(node['RangeVar']);
  const join = node['JoinExpr'] as Node | undefined;
  return join ? [...tablesIn(join['larg']), ...tablesIn(join['rarg'])] : [];
}

function nameOf(table: Node): string {
  const alias = table['alias'] as Node | undefined;
  return String(alias?.['aliasname'] ?? table['relname']);
}

/** The tables of which a condition says `team_id = $1`, whatever else it says; '' if it names none. */
function equalToTeam(condition: unknown): string[] {
  const { BoolExpr: all, A_Expr: one } = condition as { BoolExpr?: Node; A_Expr?: Node };
  if (all?.['boolop'] === 'AND_EXPR') return (all['args'] as unknown[]).flatMap(equalToTeam);
  const isEquation =
    one?.['kind'] === 'AEXPR_OP' && JSON.stringify(one['name']) === '[{"String":{"sval":"="}}]';
  if (!isEquation || !isTeamParameter(one['rexpr'])) return [];
  const table = tableOfTeamColumn(one['lexpr']);
  return table === null ? [] : [table];
}

function isTeamParameter(node: unknown): boolean {
  return (node as { ParamRef?: { number: number } } | undefined)?.ParamRef?.number === 1;
}

/** `c` of `c.team_id`, '' of `team_id`, null of anything else. */
function tableOfTeamColumn(node: unknown): string | null {
  const column = (node as { ColumnRef?: { fields: { String?: { sval: string } }[] } }).ColumnRef;
  const names = column?.fields.map(({ String: name }) => name?.sval) ?? [];
  if (names.at(-1) !== 'team_id' || names.length > 2) return null;
  return names.length === 2 ? (names[0] ?? null) : '';
}

/** The target of an INSERT is bound if its team_id comes from $1 or from a table that is bound itself. */
function boundTarget(insert: Node): Node[] {
  const columns = insert['cols'] as { ResTarget: { name: string } }[];
  const at = columns.findIndex(({ ResTarget: { name } }) => name === 'team_id');
  const { SelectStmt: source } = (insert['selectStmt'] ?? {}) as { SelectStmt?: Node };
  if (at === -1 || !source) return [];
  const values = source['valuesLists'] as { List: { items: unknown[] } }[] | undefined;
  const targets = source['targetList'] as { ResTarget: { val: unknown } }[] | undefined;
  const boundNames = boundIn(source).map(nameOf);
  const isBound = values
    ? values.every(({ List: { items } }) => isTeamParameter(items[at]))
    : isTeamParameter(targets?.[at]?.ResTarget.val) ||
      boundNames.includes(tableOfTeamColumn(targets?.[at]?.ResTarget.val) ?? '');
  return isBound ? [insert['relation'] as Node] : [];
}
