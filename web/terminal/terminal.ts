/**
 * Keeps the last lines of what code printed, as a terminal shows them: colours, carriage returns, and a cursor that moves up, as progress bars
 * do. Lines are kept in blocks, so that only a block that changed is drawn again. It is bounded; what falls out is counted, and is on the server.
 */

import { emptyLine, erase, type Line, writeAt } from './line.ts';
import { applySgr, PLAIN, type Style } from './style.ts';

export interface Block {
  readonly id: number;
  readonly lines: Line[];
  /** Another number whenever a line of it changed. */
  version: number;
}

export interface Terminal {
  write(text: string, isError: boolean): void;
  readonly blocks: readonly Block[];
  /** Lines that fell out at the top. */
  readonly dropped: number;
  readonly lineCount: number;
  readonly characters: number;
}

export interface TerminalLimits {
  lines: number;
  characters: number;
}

const LIMITS: TerminalLimits = { lines: 2_000, characters: 400_000 };
const BLOCK = 100;
/** A longer line is broken: a browser lays out a line of a megabyte for seconds. */
const LONGEST_LINE = 8_000;
/** How far up a cursor can go. */
const REACH = 500;
/** CSI sequences, OSC sequences (titles, links), other escapes, and control characters that move the cursor. */
const CONTROL =
  /\x1b\[([0-9;:?<=>]*)[ -/]*([@-~])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()*+][0-9A-B]|\x1b[@-Z\\^_=>78]|[\n\r\b\x07\x0b\x0c\x00]/g;
const HALF = /\x1b(?:\[[0-9;:?<=> -/]*|\][^\x07\x1b]{0,2000}\x1b?)?$/;

export function createTerminal(limits: TerminalLimits = LIMITS): Terminal {
  const blocks: Block[] = [{ id: 0, lines: [emptyLine()], version: 0 }];
  /** Of the first line that is kept. */
  let dropped = 0;
  let lineCount = 1;
  let characters = 0;
  let row = 0;
  let column = 0;
  let style: Style = PLAIN;
  let rest = '';

  function blockAt(at: number): { block: Block; line: Line } {
    const first = blocks[0];
    const index = first ? Math.floor(at / BLOCK) - first.id : -1;
    const block = blocks[index];
    const line = block?.lines[at % BLOCK];
    if (!block || !line)
      throw new Error(`The terminal has no line ${at}: it has ${dropped} to ${dropped + lineCount}.`);
    return { block, line };
  }

  function put(text: string, isError: boolean): void {
    for (let from = 0; from < text.length; ) {
      if (column >= LONGEST_LINE) newLine();
      const piece = text.slice(from, from + LONGEST_LINE - column);
      const { block, line } = blockAt(row);
      const before = line.length;
      writeAt(line, column, piece, style, isError);
      characters += line.length - before;
      column += piece.length;
      from += piece.length;
      block.version += 1;
    }
  }

  function newLine(): void {
    column = 0;
    row += 1;
    if (row < dropped + lineCount) return;
    const last = blocks.at(-1);
    if (last && last.lines.length < BLOCK) {
      last.lines.push(emptyLine());
      last.version += 1;
    } else blocks.push({ id: Math.floor(row / BLOCK), lines: [emptyLine()], version: 0 });
    lineCount += 1;
    characters += 1;
    forget();
  }

  /** Whole blocks fall out, so that those that stay are not drawn again. */
  function forget(): void {
    while (blocks.length > 1 && (lineCount - BLOCK >= limits.lines || characters > limits.characters)) {
      const block = blocks.shift();
      if (!block) return;
      dropped += block.lines.length;
      lineCount -= block.lines.length;
      characters -= block.lines.reduce((sum, { length }) => sum + length + 1, 0);
    }
  }

  function moveTo(to: number): void {
    const last = dropped + lineCount - 1;
    row = Math.max(dropped, last - REACH, Math.min(to, last));
  }

  function control(match: RegExpExecArray, isError: boolean): void {
    const [all, parameters = '', command] = match;
    if (all === '\n') return newLine();
    if (all === '\r') column = 0;
    if (all === '\b') column = Math.max(0, column - 1);
    if (all === '\x0b' || all === '\x0c') return newLine();
    if (!command) return;
    const count = Number(parameters) || 1;
    if (command === 'm') style = applySgr(style, parameters);
    if (command === 'A') moveTo(row - count);
    if (command === 'B') moveTo(row + count);
    if (command === 'F') [column] = [0, moveTo(row - count)];
    if (command === 'E') [column] = [0, moveTo(row + count)];
    if (command === 'C') column = Math.min(column + count, LONGEST_LINE);
    if (command === 'D') column = Math.max(0, column - count);
    if (command === 'G') column = Math.min(count - 1, LONGEST_LINE);
    if (command === 'K') eraseLine(parameters);
    if (command === 'J' && (parameters === '' || parameters === '0')) eraseBelow();
    if (command === 'P') put('', isError);
  }

  function eraseLine(parameters: string): void {
    const { block, line } = blockAt(row);
    const before = line.length;
    if (parameters === '1') erase(line, 0, column);
    else erase(line, parameters === '2' ? 0 : column, line.length);
    characters += line.length - before;
    block.version += 1;
  }

  function eraseBelow(): void {
    const [at, there] = [row, column];
    eraseLine('0');
    for (row = at + 1; row < dropped + lineCount; row++) {
      column = 0;
      eraseLine('2');
    }
    [row, column] = [at, there];
  }

  return {
    write(text, isError) {
      const whole = rest + text;
      const half = HALF.exec(whole);
      rest = half ? half[0] : '';
      const ready = rest ? whole.slice(0, -rest.length) : whole;
      CONTROL.lastIndex = 0;
      let from = 0;
      for (let match = CONTROL.exec(ready); match; match = CONTROL.exec(ready)) {
        if (match.index > from) put(ready.slice(from, match.index), isError);
        control(match, isError);
        from = match.index + match[0].length;
      }
      if (from < ready.length) put(ready.slice(from), isError);
    },
    get blocks() {
      return blocks;
    },
    get dropped() {
      return dropped;
    },
    get lineCount() {
      return lineCount;
    },
    get characters() {
      return characters;
    },
  };
}
