/**
 * The growing output of one execution: a bounded list of outputs for the record, and its text, kept in memory while it is
 * short and in a file of its own once it is longer than an answer.
 */

import { closeSync, mkdirSync, openSync, readSync } from 'node:fs';
import { truncate, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Output } from '../interpreters/interpreter.ts';
import { textOf } from './text.ts';

const KEPT_STREAM = 64_000;
const KEPT_OUTPUTS = 500;
const KEPT_IMAGES = 24_000_000;

export interface Transcript {
  readonly outputs: Output[];
  readonly length: number;
  /** The file that holds the whole text, once there is one. */
  readonly file: string | null;
  add(output: Output): void;
  /** The last of the text, for progress and for answers. */
  tail(size: number): string;
  head(size: number): string;
  /** Bytes of the text that are in the file. */
  readonly bytes: number;
  /** Resolves when everything added so far is in the file, if it belongs there. */
  flush(): Promise<void>;
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
  let streamKept = outputs.reduce((sum, output) => sum + (output.type === 'stream' ? output.text.length : 0), 0);
  let imagesKept = 0;
  let unwritten: string[] = file ? [] : [head];
  let bytes = resume?.bytes ?? 0;
  // What a server that died had written but not noted down comes again, and must not stand there twice.
  let writing = file ? truncate(file, bytes).catch(() => {}) : Promise.resolve();

  function keep(output: Output): void {
    if (output.type === 'display' && output.update && replaceDisplay(outputs, output)) return;
    if (output.type === 'stream') return keepStream(output);
    if (outputs.length >= KEPT_OUTPUTS) return;
    const size = JSON.stringify(output).length;
    if (imagesKept + size > KEPT_IMAGES) return;
    imagesKept += size;
    outputs.push(output);
  }

  function keepStream(output: Extract<Output, { type: 'stream' }>): void {
    const text = output.text.slice(0, Math.max(0, KEPT_STREAM - streamKept));
    streamKept += output.text.length;
    if (!text) return;
    const last = outputs.at(-1);
    if (last?.type === 'stream' && last.name === output.name) last.text += text;
    else if (outputs.length < KEPT_OUTPUTS) outputs.push({ ...output, text });
  }

  function addText(text: string): void {
    length += text.length;
    if (head.length < limit) head += text.slice(0, limit - head.length);
    tail = (tail + text).slice(-limit);
    unwritten.push(text);
    if (length > limit) file ??= path;
  }

  return {
    outputs,
    get length() {
      return length;
    },
    get file() {
      return file;
    },
    get bytes() {
      return bytes;
    },
    add(output) {
      keep(output);
      const text = textOf(output);
      if (text) addText(text);
    },
    tail: (size) => tail.slice(-size),
    head: (size) => head.slice(0, size),
    flush() {
      if (!file || unwritten.length === 0) return writing;
      const target = file;
      const text = unwritten.join('');
      unwritten = [];
      writing = writing.then(async () => {
        bytes += await write(target, text, bytes === 0);
      });
      return writing;
    },
  };
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

/** The first writing replaces what a server that died may have left there without noting it down. */
async function write(file: string, text: string, isFirst: boolean): Promise<number> {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const data = Buffer.from(text, 'utf8');
  await writeFile(file, data, { mode: 0o600, flag: isFirst ? 'w' : 'a' });
  return data.length;
}

function replaceDisplay(outputs: Output[], update: Extract<Output, { type: 'display' }>): boolean {
  const index = outputs.findIndex((output) => output.type === 'display' && output.displayId === update.displayId);
  if (index === -1) return false;
  outputs[index] = update;
  return true;
}
