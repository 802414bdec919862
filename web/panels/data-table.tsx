/**
 * Shows a table of any size: only the rows and columns in view are drawn, and windows of them are fetched as they come into view. A browser
 * cannot scroll over more than some ten million pixels, so that beyond that the scroll bar stands for a share of the rows.
 */

import { useEffect, useRef, useState } from 'preact/hooks';
import type { TableQuery } from '../api/client.ts';
import type { Scalar, TableWindow, Value } from '../api/schemas.ts';
import { formatCount } from '../shell/format.ts';
import { createTableWindows, type TableWindows } from './table-windows.ts';

interface DataTableProps {
  /** What the first rows are. */
  first: TableWindow;
  load(query: TableQuery, signal: AbortSignal): Promise<Value>;
  /** Another number when the table may have changed. */
  version: number;
}

interface Order {
  sort: string | undefined;
  desc: boolean;
  filter: string;
}

const ROW = 26;
const NARROWEST = 132;
const WIDEST = 240;
const INDEX = 96;
const TALLEST = 8_000_000;
const FILTER_WAIT = 250;

export function DataTable({ first, load, version }: DataTableProps) {
  const [order, setOrder] = useState<Order>({ sort: undefined, desc: false, filter: '' });
  const windows = useWindows(first, load, order, version);
  const scroller = useRef<HTMLElement>(null);
  const [view, setView] = useState({ top: 0, left: 0, height: 480, width: 800 });
  useEffect(() => {
    const element = scroller.current;
    if (!element) return;
    const read = () =>
      setView({
        top: element.scrollTop,
        left: element.scrollLeft,
        height: element.clientHeight,
        width: element.clientWidth,
      });
    const observer = new ResizeObserver(read);
    observer.observe(element);
    element.addEventListener('scroll', read, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener('scroll', read);
    };
  }, []);

  const { rowCount, columnCount } = windows;
  /** All of a table that is narrow; else as many columns as fit. */
  const wide = Math.max(NARROWEST, Math.min(WIDEST, Math.floor((view.width - INDEX) / Math.max(1, columnCount))));
  const tall = Math.min(TALLEST, (rowCount + 1) * ROW);
  const room = Math.max(1, tall - view.height);
  const atRow = Math.floor((view.top / room) * Math.max(0, rowCount - Math.floor(view.height / ROW) + 2));
  const firstRow = Math.max(0, Math.min(atRow, rowCount - 1));
  const rows = Math.min(rowCount - firstRow, Math.ceil(view.height / ROW) + 1);
  const firstColumn = Math.max(0, Math.floor((view.left - INDEX) / wide));
  const columns = Math.min(columnCount - firstColumn, Math.ceil(view.width / wide) + 2);
  const needed = windows.need(firstRow, rows, firstColumn, columns);
  // Shown where they belong, one below the other, whatever share of the rows a pixel stands for.
  const y = rowCount * ROW + ROW > TALLEST ? view.top : firstRow * ROW;
  const columnNumbers = Array.from({ length: Math.max(0, columns) }, (_, i) => firstColumn + i);

  const sortBy = (name: string) =>
    setOrder((now) =>
      now.sort === name && now.desc
        ? { ...now, sort: undefined, desc: false }
        : { ...now, sort: name, desc: now.sort === name },
    );

  return (
    <div class="data-table">
      <TableBar
        windows={windows}
        firstRow={firstRow}
        rows={rows}
        order={order}
        onFilter={(filter) => setOrder({ ...order, filter })}
      />
      <section ref={scroller} class="table-scroller" tabIndex={0} aria-label="Rows">
        <div style={{ height: `${tall}px`, width: `${INDEX + columnCount * wide}px` }}>
          <div role="table" aria-label="Table" aria-rowcount={rowCount + 1} aria-colcount={columnCount + 1}>
            <div role="row" aria-rowindex={1} class="table-head">
              <div role="columnheader" class="index" style={{ width: `${INDEX}px` }}>
                index
              </div>
              {columnNumbers.map((column) => {
                const { name = '', dtype = '' } = windows.column(column) ?? {};
                const isSorted = order.sort === name;
                return (
                  <div
                    key={column}
                    role="columnheader"
                    aria-colindex={column + 2}
                    aria-sort={isSorted ? (order.desc ? 'descending' : 'ascending') : 'none'}
                    style={{ left: `${INDEX + column * wide}px`, width: `${wide}px` }}
                  >
                    <button type="button" onClick={() => sortBy(name)} title={`${name}, ${dtype}: sort`}>
                      {name}
                      {isSorted && <span aria-hidden="true">{order.desc ? ' ↓' : ' ↑'}</span>}
                      <small>{dtype}</small>
                    </button>
                  </div>
                );
              })}
            </div>
            {Array.from({ length: Math.max(0, rows) }, (_, i) => firstRow + i).map((row) => (
              <TableRow
                key={row}
                row={row}
                wide={wide}
                y={y + ROW + 14 + (row - firstRow) * ROW}
                columns={columnNumbers}
                windows={windows}
              />
            ))}
          </div>
        </div>
      </section>
      <p class="unseen" role="status">
        {needed ? 'Fetching rows' : ''}
      </p>
    </div>
  );
}

interface TableRowProps {
  row: number;
  wide: number;
  y: number;
  columns: number[];
  windows: TableWindows;
}

function TableRow({ row, wide, y, columns, windows }: TableRowProps) {
  return (
    <div
      role="row"
      aria-rowindex={row + 2}
      class={`table-row ${row % 2 ? 'odd' : ''}`}
      style={{ top: `${y}px`, height: `${ROW}px` }}
    >
      <div role="rowheader" class="index" style={{ width: `${INDEX}px` }}>
        {windows.index(row) ?? ''}
      </div>
      {columns.map((column) => {
        const value = windows.cell(row, column);
        return (
          <div
            key={column}
            role="cell"
            aria-colindex={column + 2}
            class={value === undefined ? 'waits' : value === null ? 'null' : typeof value}
            style={{ left: `${INDEX + column * wide}px`, width: `${wide}px` }}
            title={typeof value === 'string' && value.length > 16 ? value : undefined}
          >
            {written(value)}
          </div>
        );
      })}
    </div>
  );
}

interface TableBarProps {
  windows: TableWindows;
  firstRow: number;
  rows: number;
  order: Order;
  onFilter(filter: string): void;
}

function TableBar({ windows: { rowCount, columnCount, problem }, firstRow, rows, order, onFilter }: TableBarProps) {
  const timer = useRef(0);
  const last = Math.min(rowCount, firstRow + rows);
  return (
    <div class="table-bar">
      <input
        type="search"
        placeholder="Rows that contain…"
        aria-label="Show rows that contain"
        defaultValue={order.filter}
        onInput={({ currentTarget: { value } }) => {
          clearTimeout(timer.current);
          timer.current = window.setTimeout(() => onFilter(value), FILTER_WAIT);
        }}
      />
      <span class="quiet">
        {problem ??
          `rows ${formatCount(Math.min(firstRow + 1, rowCount))}–${formatCount(last)} of ${formatCount(rowCount)}, ${formatCount(columnCount)} columns`}
      </span>
    </div>
  );
}

function useWindows(first: TableWindow, load: DataTableProps['load'], order: Order, version: number): TableWindows {
  const [, redraw] = useState(0);
  const windows = useRef<{ key: string; made: TableWindows }>(undefined);
  const key = JSON.stringify([order, version]);
  if (windows.current?.key !== key) {
    windows.current?.made.close();
    const isPlain = order.sort === undefined && order.filter === '';
    const made = createTableWindows({
      first: isPlain ? first : undefined,
      counts: { rows: first.row_count, columns: first.column_count },
      load: (query, signal) => load({ ...query, ...order }, signal),
      onChange: () => redraw((count) => count + 1),
    });
    windows.current = { key, made };
  }
  useEffect(() => () => windows.current?.made.close(), []);
  return windows.current.made;
}

function written(value: Scalar | undefined): string {
  if (value === undefined) return '';
  if (value === null) return '–';
  if (typeof value === 'number' && !Number.isInteger(value)) {
    const size = Math.abs(value);
    return size >= 1e7 || size < 1e-4 ? value.toExponential(4) : String(Number(value.toPrecision(8)));
  }
  return String(value);
}
