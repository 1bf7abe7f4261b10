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
  // edits[row][column] is the number of edits between the first `row` and the first `column` characters.
  const edits: number[][] = [];
  const at = (row: number, column: number): number =>
    row === 0 || column === 0 ? row + column : (edits[row]?.[column] ?? Infinity);
  for (let row = 1; row <= from.length; row++) {
    const current: number[] = [];
    edits[row] = current;
    for (let column = 1; column <= to.length; column++) {
      const isSame = from[row - 1] === to[column - 1];
      const isSwap = from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      current[column] = Math.min(
        at(row - 1, column) + 1,
        at(row, column - 1) + 1,
        at(row - 1, column - 1) + (isSame ? 0 : 1),
        isSwap ? at(row - 2, column - 2) + 1 : Infinity,
      );
    }
  }
  return at(from.length, to.length);
}
