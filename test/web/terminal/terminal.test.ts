/** What a terminal in the page makes of what code prints. */

import { describe, expect, it } from 'vitest';
import { textOf } from '../../../web/terminal/line.ts';
import { createTerminal, type Terminal } from '../../../web/terminal/terminal.ts';

function shown(terminal: Terminal): string[] {
  return terminal.blocks.flatMap(({ lines }) => lines.map(textOf));
}

function written(...texts: string[]): Terminal {
  const terminal = createTerminal();
  for (const text of texts) terminal.write(text, false);
  return terminal;
}

describe('a terminal', () => {
  it('overwrites a line after a carriage return, as progress bars do', () => {
    expect(shown(written('10 %\r50 %\r100 %\ndone\n'))).toEqual(['100 %', 'done', '']);
  });

  it('keeps what a shorter text leaves of a longer line', () => {
    expect(shown(written('abcdef\rxy'))).toEqual(['xycdef']);
  });

  it('redraws earlier lines after the cursor moved up', () => {
    expect(shown(written('a 1\nb 1\n', '\u001b[2A\ra 2\nb 2\n'))).toEqual(['a 2', 'b 2', '']);
  });

  it('erases to the end of a line', () => {
    expect(shown(written('a long line\rshort\u001b[K'))).toEqual(['short']);
  });

  it('reads an escape sequence that came in two pieces', () => {
    const terminal = written('\u001b[3', '1mred\u001b[0m plain');
    expect(terminal.blocks[0]?.lines[0]?.runs).toEqual([
      { text: 'red', style: { fg: 1 }, isError: false },
      { text: ' plain', style: {}, isError: false },
    ]);
  });

  it('reads colours of 256 and of 16 million', () => {
    const [first, second] = written('\u001b[38;5;208ma\u001b[38;2;1;2;3mb').blocks[0]?.lines[0]?.runs ?? [];
    expect(first?.style.fg).toBe('rgb(255 135 0)');
    expect(second?.style.fg).toBe('rgb(1 2 3)');
  });

  it('drops titles and links, which only a real terminal has', () => {
    expect(
      shown(written('\u001b]0;title\u0007text \u001b]8;;http://example.org\u001b\\link\u001b]8;;\u001b\\')),
    ).toEqual(['text link']);
  });

  it('keeps the last lines of a hundred thousand, and counts the others', () => {
    const terminal = createTerminal();
    for (let i = 0; i < 1000; i++) {
      terminal.write(Array.from({ length: 100 }, (_, n) => `line ${i * 100 + n}\n`).join(''), false);
    }
    expect(terminal.lineCount).toBeLessThanOrEqual(2_100);
    expect(terminal.dropped + terminal.lineCount).toBe(100_001);
    expect(shown(terminal).at(-2)).toBe('line 99999');
    expect(terminal.characters).toBe(shown(terminal).reduce((sum, line) => sum + line.length + 1, -1));
  });

  it('breaks a line of megabytes, and stays bounded', () => {
    const terminal = createTerminal();
    for (let i = 0; i < 50; i++) terminal.write('x'.repeat(100_000), false);
    expect(terminal.characters).toBeLessThan(1_300_000);
    expect(Math.max(...shown(terminal).map((line) => line.length))).toBe(8_000);
  });

  it('does not move above what it keeps', () => {
    expect(shown(written('one\n\u001b[99Atop'))).toEqual(['top', '']);
  });
});
