/** Writes a value that somebody looked at as text for a model: a table with its rows, a tree with its items, or the text itself. */

import type { ValueView } from '../interpreters/interpreter.ts';

const LONGEST_CELL = 60;

export function valueText(path: string, view: ValueView): string {
  if (view.kind === 'text') return `${path}: ${view.type}\n${view.text}`;
  if (view.kind === 'tree') {
    const lines = view.items.map(({ key, type, preview }) => `${key}: ${type} = ${oneLine(preview)}`);
    return [`${path}: ${view.type}, ${spanOf(view.offset, lines.length, view.count, 'items')}`, ...lines].join('\n');
  }
  const { columns, rows, index } = view;
  const shown =
    columns.length === view.column_count
      ? ''
      : `, columns ${view.column_offset + 1} to ${view.column_offset + columns.length}`;
  const size = `${view.total_count.toLocaleString('en')} × ${view.column_count}`;
  const head = `${path}: ${view.type} ${size}, ${spanOf(view.offset, rows.length, view.row_count, 'rows')}${shown}`;
  const names = ['', ...columns.map(({ name, dtype }) => `${oneLine(name)} (${dtype})`)];
  const lines = rows.map((row, place) => [
    index[place] ?? '',
    ...row.map((cell) => (cell === null ? '' : String(cell))),
  ]);
  return [head, ...[names, ...lines].map((cells) => cells.map(oneLine).join('\t'))].join('\n');
}

function spanOf(offset: number, shown: number, count: number, what: string): string {
  if (shown === 0) return `none of ${count.toLocaleString('en')} ${what}`;
  return `${what} ${offset} to ${offset + shown - 1} of ${count.toLocaleString('en')}`;
}

function oneLine(text: string): string {
  const line = text.replace(/\s+/g, ' ');
  return line.length <= LONGEST_CELL ? line : `${line.slice(0, LONGEST_CELL - 1)}…`;
}
