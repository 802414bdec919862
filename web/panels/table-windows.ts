/** Fetches windows of a table's rows and columns as they are looked at, and keeps the latest of them. */

import type { TableQuery } from '../api/client.ts';
import type { Scalar, TableWindow, Value } from '../api/schemas.ts';

export interface TableWindows {
  readonly rowCount: number;
  readonly columnCount: number;
  readonly problem: string | undefined;
  column(column: number): TableWindow['columns'][number] | undefined;
  index(row: number): string | undefined;
  /** Undefined while it is fetched. */
  cell(row: number, column: number): Scalar | undefined;
  /** Sees to it that these cells come; says whether some are still to come. */
  need(row: number, rows: number, column: number, columns: number): boolean;
  close(): void;
}

export interface TableWindowsOptions {
  first: TableWindow | undefined;
  counts: { rows: number; columns: number };
  load(query: TableQuery, signal: AbortSignal): Promise<Value>;
  onChange(): void;
}

const WINDOW_ROWS = 100;
const WINDOW_COLUMNS = 50;
const MOST_WINDOWS = 24;
/** A person who drags the scroll bar passes over most rows; those are not fetched. */
const REST = 60;

export function createTableWindows({ first, counts, load, onChange }: TableWindowsOptions): TableWindows {
  const kept = new Map<string, TableWindow>();
  const columns = new Map<number, TableWindow['columns'][number]>();
  const closing = new AbortController();
  let rowCount = first?.row_count ?? counts.rows;
  let columnCount = first?.column_count ?? counts.columns;
  let problem: string | undefined;
  let wanted: string[] = [];
  let timer = 0;
  let fetching = new AbortController();
  if (first) keep('0:0', first);

  function keep(key: string, window: TableWindow): void {
    kept.delete(key);
    kept.set(key, window);
    for (const [i, column] of window.columns.entries()) columns.set(window.column_offset + i, column);
    for (const old of kept.keys()) {
      if (kept.size <= MOST_WINDOWS) break;
      kept.delete(old);
    }
  }

  async function fetchWanted(): Promise<void> {
    fetching.abort();
    fetching = new AbortController();
    const signal = AbortSignal.any([closing.signal, fetching.signal]);
    for (const key of wanted) {
      const [row = 0, column = 0] = key.split(':').map(Number);
      const query = {
        offset: row * WINDOW_ROWS,
        limit: WINDOW_ROWS,
        columns: [column * WINDOW_COLUMNS, (column + 1) * WINDOW_COLUMNS] satisfies [number, number],
      };
      try {
        const value = await load(query, signal);
        if (value.kind !== 'table') throw new Error('It is no table any more.');
        rowCount = value.row_count;
        columnCount = value.column_count;
        problem = undefined;
        keep(key, value);
      } catch (error) {
        if (signal.aborted) return;
        problem = error instanceof Error ? error.message : String(error);
        wanted = [];
      }
      onChange();
      if (problem) return;
    }
  }

  const keyOf = (row: number, column: number) =>
    `${Math.floor(row / WINDOW_ROWS)}:${Math.floor(column / WINDOW_COLUMNS)}`;

  return {
    get rowCount() {
      return rowCount;
    },
    get columnCount() {
      return columnCount;
    },
    get problem() {
      return problem;
    },
    column: (column) => columns.get(column),
    index(row) {
      const window =
        kept.get(keyOf(row, 0)) ??
        [...kept.values()].find(({ offset, index }) => row >= offset && row < offset + index.length);
      return window?.index[row - window.offset];
    },
    cell(row, column) {
      const window = kept.get(keyOf(row, column));
      return window?.rows[row - window.offset]?.[column - window.column_offset];
    },
    need(row, rows, column, columnsShown) {
      const keys = new Set<string>();
      for (const r of [row, row + Math.max(0, rows - 1)])
        for (const c of [column, column + Math.max(0, columnsShown - 1)]) keys.add(keyOf(r, c));
      const missing = [...keys].filter((key) => !kept.has(key));
      if (missing.length === 0 || problem) return missing.length > 0;
      if (missing.join() !== wanted.join()) {
        wanted = missing;
        clearTimeout(timer);
        timer = window.setTimeout(() => void fetchWanted(), REST);
      }
      return true;
    },
    close() {
      clearTimeout(timer);
      closing.abort();
    },
  };
}
