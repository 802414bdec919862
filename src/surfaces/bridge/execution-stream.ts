/** One execution as a stream of JSON lines. A reader that goes away interrupts the code. */

import { mkdirSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import type { Output } from '../../interpreters/interpreter.ts';
import type { ExecuteRequest, Session } from '../../sessions/session.ts';
import { imageIn, textOf } from '../../sessions/text.ts';
import { notesOn } from '../../tools/execution-answer.ts';

/** What the shell client reads. Text is for standard output or error as its name says. */
export type BridgeEvent =
  | { type: 'started'; session: string; execution: number }
  | { type: 'text'; to: 'stdout' | 'stderr'; text: string }
  | { type: 'done'; outcome: string; exitCode: number; notes: string[] };

export async function streamExecution(
  session: Session,
  request: ExecuteRequest,
  response: ServerResponse,
): Promise<void> {
  const gone = new AbortController();
  const execution = session.execute({ ...request, signal: gone.signal });
  const { number } = execution.record;
  const write = (event: BridgeEvent) => response.write(`${JSON.stringify(event)}\n`);
  response.writeHead(200, { 'content-type': 'application/x-ndjson' });
  response.on('close', () => gone.abort());
  write({ type: 'started', session: session.id, execution: number });
  let pictures = 0;
  execution.onOutput((output) => {
    const picture = pictureIn(output);
    if (picture) {
      pictures += 1;
      write({
        type: 'text',
        to: 'stderr',
        text: `[figure: ${savePicture(session.folder, `${number}-${pictures}`, picture)}]\n`,
      });
      return;
    }
    const to = output.type === 'error' || (output.type === 'stream' && output.name === 'stderr') ? 'stderr' : 'stdout';
    const text = textOf(output);
    if (text) write({ type: 'text', to, text });
  });
  const record = await execution.done;
  const notes = notesOn(record, Number.POSITIVE_INFINITY);
  write({ type: 'done', outcome: record.outcome ?? 'error', exitCode: record.exitCode ?? 1, notes });
  response.end();
}

function pictureIn(output: Output) {
  return output.type === 'display' || output.type === 'result' ? imageIn(output.data) : undefined;
}

function savePicture(folder: string, name: string, picture: { mimeType: string; base64: string }): string {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, `figure-${name}.${picture.mimeType.split('/')[1]}`);
  writeFileSync(path, Buffer.from(picture.base64, 'base64'));
  return path;
}
