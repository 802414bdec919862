/**
 * Runs code for the shell client and writes its text as events, its pictures as files, and its ending. Code waits for a client that
 * reads more slowly than it prints.
 */

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Output } from '../../interpreters/interpreter.ts';
import { imageIn, streamOf, textOf } from '../../sessions/output-text.ts';
import type { Sessions, StartRequest } from '../../sessions/sessions.ts';
import { notesOn } from '../../tools/execution-answer.ts';
import type { WriteEvent } from './connection.ts';

export async function streamExecution(sessions: Sessions, request: StartRequest, write: WriteEvent): Promise<void> {
  const started = await sessions.start({ ...request, origin: 'shell', isStateful: true, isAnnounced: true });
  const { session, execution, finished } = started;
  const { number } = execution.record;
  write({ type: 'started', session: session.id, execution: number });
  let pictures = 0;
  execution.onOutput((output) => {
    const picture = pictureIn(output);
    if (picture) {
      pictures += 1;
      const path = savePicture(session.folder, `${number}-${pictures}`, picture);
      return write({ type: 'text', to: 'stderr', text: `[figure: ${path}]\n` });
    }
    const text = textOf(output);
    return text ? write({ type: 'text', to: streamOf(output), text }) : undefined;
  });
  const { record } = await finished;
  const notes = notesOn(record, Number.POSITIVE_INFINITY);
  write({ type: 'done', outcome: record.outcome ?? 'error', exitCode: record.exitCode ?? 1, notes });
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
