/** Holds one line of a terminal as runs of equally styled text, and writes into it at a column. */

import { PLAIN, type Style, sameStyle } from './style.ts';

export interface Run {
  text: string;
  style: Style;
  /** Of the error stream. */
  isError: boolean;
}

export interface Line {
  runs: Run[];
  length: number;
}

export function emptyLine(): Line {
  return { runs: [], length: 0 };
}

/** Writes over what stands there; a gap before the column becomes blanks. */
export function writeAt(line: Line, column: number, text: string, style: Style, isError: boolean): void {
  if (column > line.length) append(line, ' '.repeat(column - line.length), PLAIN, false);
  if (column < line.length) {
    const after = cut(line.runs, column + text.length, line.length);
    line.runs = cut(line.runs, 0, column);
    line.length = column;
    append(line, text, style, isError);
    for (const run of after) append(line, run.text, run.style, run.isError);
    return;
  }
  append(line, text, style, isError);
}

/** What is left of the line after blanks or nothing took the place of a part of it. */
export function erase(line: Line, from: number, to: number): void {
  if (to >= line.length) {
    line.runs = cut(line.runs, 0, from);
    line.length = Math.min(line.length, from);
    return;
  }
  writeAt(line, from, ' '.repeat(to - from), PLAIN, false);
}

export function textOf(line: Line): string {
  return line.runs.map(({ text }) => text).join('');
}

function append(line: Line, text: string, style: Style, isError: boolean): void {
  if (text === '') return;
  const last = line.runs.at(-1);
  if (last && last.isError === isError && sameStyle(last.style, style)) last.text += text;
  else line.runs.push({ text, style, isError });
  line.length += text.length;
}

function cut(runs: readonly Run[], from: number, to: number): Run[] {
  const kept: Run[] = [];
  let at = 0;
  for (const run of runs) {
    const text = run.text.slice(Math.max(0, from - at), Math.max(0, to - at));
    if (text !== '') kept.push({ ...run, text });
    at += run.text.length;
  }
  return kept;
}
