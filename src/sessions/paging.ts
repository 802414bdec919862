/** Reads a part of an execution's text: by offset, by lines, by pattern, or around a word; from memory or from its file, a piece at a time. */

import { createReadStream } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { CuvetteError } from '../errors.ts';
import { packageFile } from '../package-root.ts';
import type { Transcript } from './transcript.ts';

export type Selection =
  | { by: 'offset'; offset: number; limit: number }
  | { by: 'lines'; from: number; count: number; limit: number }
  | { by: 'pattern'; pattern: string; limit: number };

export interface Page {
  text: string;
  /** Where to read on; null at the end of what there is. */
  next: number | null;
}

export interface FoundText {
  /** In characters of the whole text. */
  offset: number;
  /** The line around it, cut where it is long. */
  line: string;
}

const SEARCH_TIMEOUT_MS = 10_000;
/** Characters of a line that are shown before and after what was found in it. */
const AROUND = 200;

export async function readPage(transcript: Transcript, selection: Selection): Promise<Page> {
  await transcript.flush();
  const pieces = () => piecesOf(transcript);
  if (selection.by === 'offset') return readOffset(pieces(), selection.offset, selection.limit, transcript.length);
  if (selection.by === 'lines') return readLines(pieces(), selection.from, selection.count, selection.limit);
  return search(transcript, selection.pattern, selection.limit);
}

/** Finds a word in either case. As it is no pattern, it takes no longer than reading the text. */
export async function findText(
  transcript: Transcript,
  word: string,
  most: number,
): Promise<{ matches: FoundText[]; hasMore: boolean }> {
  await transcript.flush();
  const wanted = new RegExp(word.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&'), 'giu');
  const matches: FoundText[] = [];
  let text = '';
  /** Where the text begins in the whole, and how far the whole is searched. */
  let start = 0;
  let searched = 0;
  const search = (end: number) => {
    for (const { index, 0: found } of text.slice(0, end).matchAll(wanted)) {
      if (start + index < searched) continue;
      if (matches.length > most) return;
      matches.push({ offset: start + index, line: lineAround(text, index, index + found.length) });
    }
    searched = start + end;
  };
  for await (const piece of piecesOf(transcript)) {
    text += piece;
    // What is near the end may go on in the next piece.
    if (text.length > word.length + AROUND) search(text.length - word.length - AROUND);
    if (matches.length > most) break;
    const kept = text.slice(-2 * (word.length + AROUND));
    start += text.length - kept.length;
    text = kept;
  }
  if (matches.length <= most) search(text.length);
  return { matches: matches.slice(0, most), hasMore: matches.length > most };
}

function lineAround(text: string, from: number, to: number): string {
  const before = text.slice(Math.max(0, from - AROUND), from);
  const after = text.slice(to, to + AROUND);
  const [rest = ''] = after.split('\n');
  return `${before.slice(before.lastIndexOf('\n') + 1)}${text.slice(from, to)}${rest}`;
}

async function readOffset(pieces: AsyncIterable<string>, offset: number, limit: number, length: number): Promise<Page> {
  const start = offset < 0 ? Math.max(0, length + offset) : offset;
  let position = 0;
  let text = '';
  for await (const piece of pieces) {
    const from = Math.max(0, start - position);
    position += piece.length;
    if (from < piece.length) text += piece.slice(from, from + limit - text.length);
    if (text.length >= limit) break;
  }
  // A character of two code units is not torn in two, unless nothing else fits.
  if (text.length > 1 && /[\uD800-\uDBFF]$/.test(text) && start + text.length < length) text = text.slice(0, -1);
  const end = start + text.length;
  return { text, next: end < length ? end : null };
}

/** Lines are counted from 1; a negative number counts from the end. */
async function readLines(pieces: AsyncIterable<string>, from: number, count: number, limit: number): Promise<Page> {
  const wanted = from < 0 ? lastLines(-from, limit) : someLines(Math.max(1, from), count, limit);
  let rest = '';
  for await (const piece of pieces) {
    const lines = (rest + piece).split('\n');
    rest = lines.pop() ?? '';
    lines.forEach(wanted.take);
  }
  if (rest) wanted.take(rest);
  return wanted.page();
}

interface LineTaker {
  take(line: string): void;
  page(): Page;
}

function someLines(from: number, count: number, limit: number): LineTaker {
  const taken: string[] = [];
  let number = 0;
  let room = limit;
  return {
    take(line) {
      number += 1;
      const isFull = taken.length >= count || (taken.length > 0 && line.length > room);
      if (number !== from + taken.length || isFull) return;
      taken.push(line.slice(0, room));
      room -= line.length + 1;
    },
    page() {
      const next = from + taken.length;
      return { text: taken.join('\n'), next: next <= number ? next : null };
    },
  };
}

/** The end is what is wanted: where not all of it fits, the first lines give way. */
function lastLines(count: number, limit: number): LineTaker {
  const taken: string[] = [];
  let size = 0;
  return {
    take(line) {
      const shown = line.slice(-limit);
      taken.push(shown);
      size += shown.length + 1;
      while (taken.length > 1 && (taken.length > count || size - 1 > limit)) size -= (taken.shift()?.length ?? 0) + 1;
    },
    page: () => ({ text: taken.join('\n'), next: null }),
  };
}

/** In a thread of its own: a pattern that takes forever stops nobody but its author. */
function search(transcript: Transcript, pattern: string, limit: number): Promise<Page> {
  try {
    new RegExp(pattern, 'u');
  } catch (error) {
    throw new CuvetteError(
      'invalid_input',
      `The pattern is not a regular expression: ${error instanceof Error ? error.message : error}.`,
    );
  }
  const workerData = {
    pattern,
    limit,
    file: transcript.file,
    text: transcript.file ? null : transcript.head(transcript.length),
  };
  return new Promise((resolve, reject) => {
    const worker = new Worker(packageFile('dist', 'search-worker.js'), { workerData });
    const timer = setTimeout(() => {
      void worker.terminate();
      reject(new CuvetteError('invalid_input', 'The pattern took too long to match; use a simpler one.'));
    }, SEARCH_TIMEOUT_MS);
    worker.once('message', (text: string) => resolve({ text, next: null }));
    worker.once('error', reject);
    worker.once('exit', () => clearTimeout(timer));
  });
}

function piecesOf(transcript: Transcript): AsyncIterable<string> {
  return transcript.file ? fromFile(transcript.file) : fromMemory(transcript.head(transcript.length));
}

async function* fromMemory(text: string): AsyncIterable<string> {
  yield text;
}

function fromFile(file: string): AsyncIterable<string> {
  return createReadStream(file, { encoding: 'utf8', highWaterMark: 1 << 18 });
}
