/** The candidate that was probably meant, or null if none is close. Upper and lower case count as the same. */
export function closest(typed: string, candidates: readonly string[]): string | null {
  const word = typed.toLowerCase();
  const editsMax = Math.max(1, Math.floor(word.length / 3));
  const [nearest] = candidates
    .map((candidate) => ({ candidate, edits: editsBetween(word, candidate.toLowerCase()) }))
    .filter(({ edits }) => edits <= editsMax)
    .toSorted((a, b) => a.edits - b.edits);
  if (nearest) return nearest.candidate;
  // An abbreviation is many edits away, but its meaning is clear if only one candidate begins with it.
  const longer = candidates.filter((candidate) => candidate.toLowerCase().startsWith(word));
  return word.length >= 2 && longer.length === 1 ? (longer[0] ?? null) : null;
}

/** How many characters must be inserted, removed, replaced or swapped with their neighbour. */
export function editsBetween(from: string, to: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row++) {
    const current = [row];
    for (let column = 1; column <= to.length; column++) {
      const isSame = from[row - 1] === to[column - 1];
      const isSwap =
        row > 1 &&
        column > 1 &&
        from[row - 1] === to[column - 2] &&
        from[row - 2] === to[column - 1];
      current[column] = Math.min(
        at(last, column) + 1,
        at(current, column - 1) + 1,
        at(last, column - 1) + (isSame ? 0 : 1),
        isSwap ? at(beforeLast, column - 2) + 1 : Infinity,
      );
    }
    [beforeLast, last] = [last, current];
  }
  return at(last, to.length);
}

function at(row: readonly number[], column: number): number {
  return row[column] ?? Infinity;
}
