/**
 * Turns what one execution shows into events for spectators: text is put together for a moment, a display that is updated often is told
 * once in a moment, and text that comes faster than anybody reads is only told to be on the disk. It never makes the code wait.
 */

import type { Output } from '../../interpreters/interpreter.ts';
import type { Execution } from '../../sessions/execution.ts';
import { textOf } from '../../sessions/output-text.ts';
import { type OutputInfo, toOutputInfo } from './execution-info.ts';

export type OutputEvent =
  /** `offset`: where its text begins in the whole text of the execution. */
  | { type: 'output'; execution: number; offset: number; output: OutputInfo }
  | { type: 'update'; execution: number; index: number; output: OutputInfo }
  /** Text that is on the disk alone. */
  | { type: 'skipped'; execution: number; from: number; to: number };

export interface OutputQueue {
  /** Tells at once what waits. */
  flush(): void;
  /** Listens no more, and tells nothing more. */
  close(): void;
}

interface Chunk {
  name: 'stdout' | 'stderr';
  index: number | null;
  offset: number;
  text: string;
}

const EVERY_MS = 30;
/** Characters of text: in one event, and in one moment. */
const MOST_IN_EVENT = 32 << 10;
const MOST_AT_ONCE = 64 << 10;

export function watchOutput(execution: Execution, tell: (event: OutputEvent) => void): OutputQueue {
  const { number } = execution.record;
  let chunks: Chunk[] = [];
  let size = 0;
  let skipped: { from: number; to: number } | undefined;
  /** By position: displays that were updated. */
  let updates = new Map<number, Output>();
  let timer: NodeJS.Timeout | undefined;

  function flush(): void {
    clearTimeout(timer);
    timer = undefined;
    for (const chunk of chunks) tellText(chunk);
    if (skipped) tell({ type: 'skipped', execution: number, ...skipped });
    for (const [index, output] of updates)
      tell({ type: 'update', execution: number, index, output: toOutputInfo(output, index) });
    chunks = [];
    size = 0;
    skipped = undefined;
    updates = new Map();
  }

  function tellText({ name, index, offset, text }: Chunk): void {
    for (let start = 0; start < text.length; ) {
      const end = endOfPiece(text, start + MOST_IN_EVENT);
      const output = { type: 'stream' as const, index, name, text: text.slice(start, end) };
      tell({ type: 'output', execution: number, offset: offset + start, output });
      start = end;
    }
  }

  function addText(name: Chunk['name'], text: string, index: number | null, offset: number): void {
    if (skipped || size + text.length > MOST_AT_ONCE) {
      skipped = { from: skipped?.from ?? offset, to: offset + text.length };
      return;
    }
    size += text.length;
    const last = chunks.at(-1);
    if (last?.name === name && last.index === index && last.offset + last.text.length === offset) last.text += text;
    else chunks.push({ name, index, offset, text });
  }

  const unwatch = execution.onOutput((output, position) => {
    const offset = execution.transcript.length - textOf(output).length;
    if (output.type === 'stream') addText(output.name, output.text, position, offset);
    else if (output.type === 'display' && output.update && position !== null) updates.set(position, output);
    else {
      flush(); // What was printed before comes before.
      tell({ type: 'output', execution: number, offset, output: toOutputInfo(output, position) });
      return;
    }
    timer ??= setTimeout(flush, EVERY_MS);
  });

  return {
    flush,
    close() {
      clearTimeout(timer);
      unwatch();
    },
  };
}

/** Where a piece ends that may have so many characters: not between the halves of one. */
function endOfPiece(text: string, most: number): number {
  if (most >= text.length) return text.length;
  return /[\uD800-\uDBFF]/.test(text.charAt(most - 1)) ? most - 1 : most;
}
