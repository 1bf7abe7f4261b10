/** A label or a number; null is an empty cell. Numbers are never taken for formulas, also if they are negative. */
export type Cell = string | number | ExactNumber | null;

/** A number with more digits than a double has. */
export interface ExactNumber {
  digits: string;
}

/** RFC 4180, which every spreadsheet reads. The dashboard and the command line write the same. */
export function csvText(header: readonly string[], rows: readonly (readonly Cell[])[]): string {
  return [header, ...rows].map((row) => `${row.map(cellText).join(',')}\r\n`).join('');
}

function cellText(cell: Cell): string {
  if (cell === null) return '';
  if (typeof cell === 'number') return plainNumber(cell);
  if (typeof cell === 'object') return cell.digits;
  const text = harmless(cell);
  // In some countries spreadsheets separate cells by semicolons.
  return /[",;\r\n]/.test(text) || text !== text.trim() ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Spreadsheets run a cell that begins with one of these characters as a formula. Names are chosen by whoever records a call. */
function harmless(text: string): string {
  return /^\s*[=+\-@\t\r\n\uFF1D\uFF0B\uFF0D\uFF20]/.test(text) ? `'${text}` : text;
}

/** Without an exponent, which not every program reads. */
function plainNumber(value: number): string {
  const text = String(value);
  return text.includes('e') ? value.toFixed(20).replace(/\.?0+$/, '') : text;
}
