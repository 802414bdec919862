import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Page, readPage, type Selection } from '../../src/sessions/paging.ts';
import { createTranscript } from '../../src/sessions/transcript.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const TEXT = Array.from({ length: 100 }, (_, index) => `line ${index + 1}\n`).join('');

/** The same text in memory and in a file: where it is must not show. */
async function read(selection: Selection, text = TEXT): Promise<Page> {
  const [inMemory, inFile] = await Promise.all([1_000_000, 10].map((limit) => readFrom(text, limit, selection)));
  expect(inMemory).toEqual(inFile);
  return inMemory ?? { text: '', next: null };
}

async function readFrom(text: string, limit: number, selection: Selection): Promise<Page> {
  const transcript = createTranscript({ path: join(temporaryFolder(), 'output-1.txt'), limit });
  transcript.add({ type: 'stream', name: 'stdout', text });
  await transcript.flush();
  expect(transcript.file === null).toBe(text.length <= limit);
  return readPage(transcript, selection);
}

describe('a page by offset', () => {
  it('is the text from there', async () => {
    expect(await read({ by: 'offset', offset: 7, limit: 6 })).toEqual({ text: 'line 2', next: 13 });
  });

  it('followed by the next ones gives the whole text', async () => {
    let text = '';
    let pages = 0;
    for (let offset: number | null = 0; offset !== null; pages++) {
      const page: Page = await read({ by: 'offset', offset, limit: 97 });
      text += page.text;
      offset = page.next;
    }
    expect(text).toBe(TEXT);
    expect(pages).toBe(Math.ceil(TEXT.length / 97));
  });

  it('is the last of the text when it counts from the end', async () => {
    expect(await read({ by: 'offset', offset: -9, limit: 100 })).toEqual({ text: 'line 100\n', next: null });
  });

  it('tells where to read on when the last of the text is longer than the limit', async () => {
    expect(await read({ by: 'offset', offset: -9, limit: 4 })).toEqual({ text: 'line', next: TEXT.length - 5 });
  });

  it('is the whole text when it counts further back than the text begins', async () => {
    expect(await read({ by: 'offset', offset: -1_000_000, limit: 1_000_000 })).toEqual({ text: TEXT, next: null });
  });

  it('is empty at the end and beyond', async () => {
    expect(await read({ by: 'offset', offset: TEXT.length, limit: 10 })).toEqual({ text: '', next: null });
    expect(await read({ by: 'offset', offset: TEXT.length + 5, limit: 10 })).toEqual({ text: '', next: null });
  });

  it('counts characters, not bytes, in a text longer than what is read at once', async () => {
    const text = 'żółw'.repeat(200_000);
    expect(await read({ by: 'offset', offset: 700_001, limit: 3 }, text)).toEqual({ text: 'ółw', next: 700_004 });
  });
});

describe('a page by lines', () => {
  it('starts at that line, from 1', async () => {
    expect(await read({ by: 'lines', from: 1, count: 2, limit: 1000 })).toEqual({ text: 'line 1\nline 2', next: 3 });
    expect(await read({ by: 'lines', from: 42, count: 1, limit: 1000 })).toEqual({ text: 'line 42', next: 43 });
  });

  it('followed by the next ones gives every line once', async () => {
    const lines: string[] = [];
    for (let from: number | null = 1; from !== null; ) {
      const page: Page = await read({ by: 'lines', from, count: 7, limit: 1000 });
      lines.push(...page.text.split('\n'));
      from = page.next;
    }
    expect(lines.join('\n')).toBe(TEXT.trimEnd());
  });

  it('ends before a line that does not fit, and reads on there', async () => {
    const page = await read({ by: 'lines', from: 1, count: 100, limit: 19 });
    expect(page).toEqual({ text: 'line 1\nline 2', next: 3 });
  });

  it('cuts a line that is longer than the limit by itself, and goes on after it', async () => {
    const page = await read({ by: 'lines', from: 1, count: 2, limit: 10 }, `${'x'.repeat(50)}\nnext\n`);
    expect(page).toEqual({ text: 'x'.repeat(10), next: 2 });
  });

  it('is the last lines when the number is negative', async () => {
    expect(await read({ by: 'lines', from: -2, count: 200, limit: 1000 })).toEqual({
      text: 'line 99\nline 100',
      next: null,
    });
  });

  it('of last lines that do not fit has the very last, or tells where to read on', async () => {
    const page = await read({ by: 'lines', from: -50, count: 200, limit: 30 });
    expect(page.next !== null || page.text.endsWith('line 100')).toBe(true);
  });

  it('is the whole text when there are fewer lines than asked for', async () => {
    const page = await read({ by: 'lines', from: -1000, count: 200, limit: 10_000 });
    expect(page).toEqual({ text: TEXT.trimEnd(), next: null });
  });

  it('includes a last line that has no end', async () => {
    expect(await read({ by: 'lines', from: 2, count: 5, limit: 100 }, 'a\nb')).toEqual({ text: 'b', next: null });
    expect(await read({ by: 'lines', from: -1, count: 5, limit: 100 }, 'a\nb')).toEqual({ text: 'b', next: null });
  });

  it('keeps empty lines', async () => {
    expect(await read({ by: 'lines', from: 1, count: 5, limit: 100 }, 'a\n\n\nb\n')).toEqual({
      text: 'a\n\n\nb',
      next: null,
    });
  });

  it('is empty after the last line', async () => {
    expect(await read({ by: 'lines', from: 101, count: 5, limit: 100 })).toEqual({ text: '', next: null });
  });
});

describe('a page by pattern', () => {
  it('refuses what is no regular expression, and says so', async () => {
    await expect(readFrom(TEXT, 1000, { by: 'pattern', pattern: '(', limit: 100 })).rejects.toThrow(
      'The pattern is not a regular expression',
    );
  });
});
