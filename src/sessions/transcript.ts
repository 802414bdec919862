/**
 * Collects the output of one execution: a bounded list of outputs for the record, and its text, which is kept in memory while it is
 * short and in a file of its own once it is longer than an answer.
 */

import { closeSync, mkdirSync, openSync, readSync } from 'node:fs';
import { open, truncate } from 'node:fs/promises';
import { dirname } from 'node:path';
import { writeText } from '../files/write-text.ts';
import type { Output } from '../interpreters/interpreter.ts';
import { textOf } from './output-text.ts';

/** Characters that are written at once. */
const PIECE = 64_000;
const KEPT_STREAM = 64_000;
const KEPT_OUTPUTS = 500;
const KEPT_IMAGES = 24_000_000;

export interface Transcript {
  readonly outputs: Output[];
  /** Positions of the outputs that have changed since this was last asked. */
  takeChanged(): number[];
  /** These could not be written. */
  markChanged(positions: number[]): void;
  readonly length: number;
  /** The file that holds the whole text, once there is one. */
  readonly file: string | null;
  /** Says at which position of the outputs it is kept; null where it is not. */
  add(output: Output): number | null;
  /** The last of the text, for progress and for answers. */
  tail(size: number): string;
  head(size: number): string;
  /**
   * Writes everything added so far to the file, if it belongs there, and resolves with the size of the file then. After a failure, the
   * next flush writes what is missing.
   */
  flush(): Promise<number>;
}

export interface TranscriptOptions {
  /** Where the text goes when it is longer than the limit. */
  path: string;
  limit: number;
  /** What an earlier server had kept. */
  resume?: { outputs: Output[]; text: string; length: number; file: string | null; bytes: number };
}

export function createTranscript({ path, limit, resume }: TranscriptOptions): Transcript {
  const outputs = resume?.outputs ?? [];
  let length = resume?.length ?? 0;
  let file = resume?.file ?? null;
  let head = resume?.text ?? '';
  let tail = file ? lastOf(file, resume?.bytes ?? 0, limit) : head;
  let changed = new Set<number>();
  let streamKept = outputs.reduce((sum, output) => sum + (output.type === 'stream' ? output.text.length : 0), 0);
  let imagesKept = 0;
  let unwritten: string[] = file ? [] : [head];
  /** How many pieces are written, and how many are to be: those do not change any more. */
  let written = 0;
  let sealed = 0;
  let bytes = resume?.bytes ?? 0;
  let hasFailed = false;
  // What a server that died had written but not recorded comes again, and must not stand there twice.
  let writing = (file ? truncate(file, bytes).catch(() => {}) : Promise.resolve()).then(() => bytes);

  function keep(output: Output): number | null {
    const shown = output.type === 'display' && output.update ? displayedAt(outputs, output) : -1;
    if (shown !== -1) return put(shown, output);
    if (output.type === 'stream') return keepStream(output);
    if (outputs.length >= KEPT_OUTPUTS) return null;
    const size = sizeOf(output);
    if (imagesKept + size > KEPT_IMAGES) return null;
    imagesKept += size;
    return put(outputs.length, output);
  }

  function keepStream(output: Extract<Output, { type: 'stream' }>): number | null {
    const text = output.text.slice(0, Math.max(0, KEPT_STREAM - streamKept));
    streamKept += output.text.length;
    if (!text) return null;
    const last = outputs.at(-1);
    // Replaced, not changed: a record that is being written holds the old one.
    if (last?.type === 'stream' && last.name === output.name)
      return put(outputs.length - 1, { ...last, text: last.text + text });
    return outputs.length < KEPT_OUTPUTS ? put(outputs.length, { ...output, text }) : null;
  }

  function put(position: number, output: Output): number {
    outputs[position] = output;
    changed.add(position);
    return position;
  }

  function addText(text: string): void {
    length += text.length;
    if (head.length < limit) head += text.slice(0, limit - head.length);
    tail = (tail + text).slice(-limit);
    const last = unwritten.at(-1) ?? '';
    const isOpen = written + unwritten.length > sealed;
    if (isOpen && last.length + text.length <= PIECE) unwritten[unwritten.length - 1] = last + text;
    else unwritten.push(text);
    if (length > limit) file ??= path;
  }

  async function writeUpTo(target: string, upTo: number): Promise<number> {
    const texts = unwritten.slice(0, Math.max(0, upTo - written));
    if (texts.length === 0) return bytes;
    try {
      bytes += await append(target, texts, bytes, hasFailed);
    } catch (error) {
      hasFailed = true;
      throw error;
    }
    hasFailed = false;
    unwritten = unwritten.slice(texts.length);
    written += texts.length;
    return bytes;
  }

  return {
    outputs,
    takeChanged() {
      const taken = [...changed];
      changed = new Set();
      return taken;
    },
    markChanged(positions) {
      for (const position of positions) changed.add(position);
    },
    get length() {
      return length;
    },
    get file() {
      return file;
    },
    add(output) {
      const position = keep(output);
      const text = textOf(output);
      if (text) addText(text);
      return position;
    },
    tail: (size) => tail.slice(-size),
    head: (size) => head.slice(0, size),
    flush() {
      if (!file) return writing;
      const target = file;
      const upTo = written + unwritten.length;
      sealed = upTo;
      writing = writing.catch(() => 0).then(() => writeUpTo(target, upTo));
      return writing;
    },
  };
}

/** Characters of what it shows. */
function sizeOf(output: Exclude<Output, { type: 'stream' }>): number {
  const parts = output.type === 'error' ? output.traceback : Object.values(output.data);
  return parts.reduce<number>((sum, part) => sum + (typeof part === 'string' ? part : JSON.stringify(part)).length, 0);
}

function lastOf(file: string, end: number, size: number): string {
  try {
    const fd = openSync(file, 'r');
    const data = Buffer.alloc(Math.min(end, size * 4));
    readSync(fd, data, 0, data.length, end - data.length);
    closeSync(fd);
    return data.toString('utf8').slice(-size);
  } catch {
    return ''; // Somebody has deleted it; what is left is in the record.
  }
}

/** Adds to a file of that size; says how many bytes. What a server that died, or a write that failed, has left behind that size goes. */
async function append(file: string, texts: string[], size: number, hasFailed: boolean): Promise<number> {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const handle = await open(file, size === 0 ? 'w' : 'a', 0o600);
  try {
    if (hasFailed) await handle.truncate(size);
    let bytes = 0;
    for (const text of texts) bytes += await writeText(handle, text, null);
    return bytes;
  } finally {
    await handle.close();
  }
}

/** Where the display stands that this one updates; -1 if it is not there. */
function displayedAt(outputs: Output[], update: Extract<Output, { type: 'display' }>): number {
  return outputs.findIndex((output) => output.type === 'display' && output.displayId === update.displayId);
}
