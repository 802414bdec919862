/** Holds what the page knows of one execution: its head, and its outputs in order, bounded in memory. Where events come from is `session-store.ts`'s. */

import { type Signal, signal } from '@preact/signals';
import type { ErrorOutput, Execution, ExecutionHead, Output, RichOutput } from '../api/schemas.ts';
import { createTerminal, type Terminal } from '../terminal/terminal.ts';

export type Part =
  /** What adjacent stream outputs wrote, standard output and standard error together. */
  | { kind: 'text'; key: string; terminal: Terminal }
  | { kind: 'rich'; key: string; output: RichOutput }
  | { kind: 'error'; key: string; output: ErrorOutput }
  /** Text that did not come here; the server has it. */
  | { kind: 'gap'; key: string; from: number; to: number };

export interface Cell {
  readonly number: number;
  readonly head: Signal<ExecutionHead>;
  readonly parts: Part[];
  /** Another number whenever parts changed; at most once a frame. */
  readonly version: Signal<number>;
  /** Characters of text that have come, in all. */
  textEnd: number;
  /** Whether its outputs were dropped to save memory, and have to be fetched when it is looked at. */
  isShed: boolean;
  /** Frames that were drawn before this cell was last looked at. */
  seenAt: number;
}

/** Inline values of more rich outputs than these are dropped: the server has them. */
const MOST_INLINE = 60;

export function createCell(head: ExecutionHead): Cell {
  return {
    number: head.number,
    head: signal(head),
    parts: [],
    version: signal(0),
    textEnd: 0,
    isShed: false,
    seenAt: 0,
  };
}

/** Replaces whatever was there by what the server tells. */
export function fillCell(cell: Cell, { outputs, ...head }: Execution): void {
  cell.head.value = head;
  cell.parts.length = 0;
  cell.textEnd = 0;
  cell.isShed = false;
  for (const output of outputs) addOutput(cell, output, undefined);
  const length = head.text_length ?? 0;
  if (head.output_is_cut && length > cell.textEnd) addGap(cell, cell.textEnd, length);
  cell.textEnd = Math.max(cell.textEnd, length);
}

/** `offset`: where a stream's text stands in all the text of the execution. What is already here is not added twice. */
export function addOutput(cell: Cell, output: Output, offset: number | undefined): void {
  if (output.type === 'stream') return addText(cell, output.text, output.name === 'stderr', offset);
  const key = output.index === null ? `unkept-${cell.parts.length}` : `${output.index}`;
  if (cell.parts.some((part) => part.key === key)) return;
  if (output.type === 'error') cell.parts.push({ kind: 'error', key, output });
  else {
    cell.parts.push({ kind: 'rich', key, output });
    dropInline(cell);
  }
}

export function replaceOutput(cell: Cell, index: number, output: Output): void {
  if (output.type !== 'display' && output.type !== 'result') return;
  const at = cell.parts.findIndex(({ key }) => key === `${index}`);
  const part: Part = { kind: 'rich', key: `${index}`, output };
  if (at >= 0) cell.parts[at] = part;
  else cell.parts.push(part);
}

export function addGap(cell: Cell, from: number, to: number): void {
  if (to <= cell.textEnd) return;
  cell.parts.push({ kind: 'gap', key: `gap-${from}`, from, to });
  cell.textEnd = to;
}

export function charactersOf(cell: Cell): number {
  return cell.parts.reduce((sum, part) => sum + (part.kind === 'text' ? part.terminal.characters : 200), 0);
}

export function shed(cell: Cell): void {
  cell.parts.length = 0;
  cell.isShed = true;
}

function addText(cell: Cell, text: string, isError: boolean, offset: number | undefined): void {
  // Results and tracebacks are in the whole text, too, so that an offset may be larger than what came as text.
  const known = offset === undefined ? 0 : Math.max(0, cell.textEnd - offset);
  if (known >= text.length) return;
  const fresh = text.slice(known);
  const last = cell.parts.at(-1);
  if (last?.kind === 'text') last.terminal.write(fresh, isError);
  else {
    const terminal = createTerminal();
    terminal.write(fresh, isError);
    cell.parts.push({ kind: 'text', key: `text-${cell.textEnd}`, terminal });
  }
  cell.textEnd = Math.max(cell.textEnd, (offset ?? 0) + known) + fresh.length;
}

function dropInline(cell: Cell): void {
  const index = cell.parts.length - MOST_INLINE - 1;
  const part = cell.parts[index];
  if (part?.kind !== 'rich') return;
  const { data, large, ...rest } = part.output;
  const sizes = Object.fromEntries(Object.entries(data).map(([type, value]) => [type, sizeOf(value)]));
  cell.parts[index] = { ...part, output: { ...rest, data: {}, large: { ...large, ...sizes } } };
}

function sizeOf(value: unknown): number {
  return typeof value === 'string' ? value.length : JSON.stringify(value ?? null).length;
}
