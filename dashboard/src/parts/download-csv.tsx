import { csvText } from '../../../server/src/core/csv.ts';
import type { Cell } from '../../../server/src/core/csv.ts';
import { DownloadIcon } from './icons.tsx';

export interface Sheet {
  header: readonly string[];
  rows: readonly (readonly Cell[])[];
}

interface DownloadCsvProps {
  /** The file's name without its ending, and what the button says it downloads. */
  name: string;
  /** Called on click. */
  sheet: () => Sheet;
}

/** Saves a table as it is known here; no request is made. */
export function DownloadCsv({ name, sheet }: DownloadCsvProps) {
  const onClick = (): void => {
    const { header, rows } = sheet();
    save(`${name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')}.csv`, csvText(header, rows));
  };
  return (
    <button
      type="button"
      class="button small"
      aria-label={`Download CSV: ${name}`}
      title="Download CSV"
      onClick={onClick}
    >
      <DownloadIcon />
      CSV
    </button>
  );
}

function save(name: string, text: string): void {
  // The mark at the beginning tells spreadsheets that it is UTF-8.
  const url = URL.createObjectURL(new Blob(['\uFEFF', text], { type: 'text/csv;charset=utf-8' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = `tracetally-${name}`;
  link.click();
  // The download has begun by then.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
