/** Draws a map of sites as text: a cell for each, whose block says how strong it is, and a minus sign before it that it acts the other way. */

import { missing } from '../core/missing.ts';
import { formatShort } from './numbers.ts';

export interface MapPicture {
  /** What a row and a column are. */
  title: string;
  rows: { name: string; values: readonly number[] }[];
  columns: readonly string[];
}

const SHADES = '·▁▂▃▄▅▆▇█';
const CELL = 3;

export function drawMap({ title, rows, columns }: MapPicture): string {
  const strongest = Math.max(...rows.flatMap(({ values }) => values.map(Math.abs)));
  const names = Math.max(...rows.map(({ name }) => name.length));
  const shade = (value: number) => {
    const level = strongest > 0 ? Math.round((Math.abs(value) / strongest) * (SHADES.length - 1)) : 0;
    const block = SHADES[level] ?? missing('shade', level);
    return `${value < 0 && level > 0 ? '-' : ' '}${block}`.padStart(CELL);
  };
  const head = columns.map((column) => column.padStart(CELL)).join('');
  const lines = rows.map(({ name, values }) => `${name.padStart(names)} ${values.map(shade).join('')}`);
  return [title, `${' '.repeat(names)} ${head}`, ...lines, `█ = ${formatShort(strongest)}, - the other way`].join('\n');
}
