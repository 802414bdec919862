/** Prints the lines that match a pattern, with their numbers, up to a limit. Runs as a worker thread. */

import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { parentPort, workerData } from 'node:worker_threads';

const { pattern, limit, file, text } = workerData as {
  pattern: string;
  limit: number;
  file: string | null;
  text: string | null;
};
const wanted = new RegExp(pattern, 'u');
const found: string[] = [];
let size = 0;
let number = 0;
let matches = 0;

for await (const line of createInterface({
  input: file ? createReadStream(file) : Readable.from([text ?? '']),
  crlfDelay: 0,
})) {
  number += 1;
  if (!wanted.test(line)) continue;
  matches += 1;
  const room = limit - size;
  if (room <= 0) continue;
  const shown = `${number}: ${line}`.slice(0, Math.min(room, 2000));
  size += shown.length + 1;
  found.push(shown);
}
const summary = found.length < matches ? [`[${matches - found.length} more lines match]`] : [];
parentPort?.postMessage([...found, ...summary].join('\n') || `[none of ${number} lines matches]`);
