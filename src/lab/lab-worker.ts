/** A lab in a thread of its own: a regression over thousands of rows must keep nobody else waiting. */

import { parentPort, workerData } from 'node:worker_threads';
import { toCuvetteError } from '../errors.ts';
import type { Lab } from './lab.ts';
import { type FromLabThread, OPENING, type ToLabThread } from './lab-thread.ts';
import { type LocalLabOptions, openLocalLab } from './local-lab.ts';
import type { LabContext } from './workbench.ts';

const stops = new Map<number, AbortController>();

// Whoever gives up while it opens ends the thread.
await answer(OPENING, async (context) => {
  const lab = await openLocalLab(workerData as LocalLabOptions, context);
  parentPort?.on('message', (message: ToLabThread) => take(lab, message));
  return {};
});

function take(lab: Lab, message: ToLabThread): void {
  if ('abort' in message) stops.get(message.abort)?.abort();
  else void answer(message.id, (context) => lab.call(message.name, message.args, context));
}

async function answer(id: number, work: (context: LabContext) => Promise<Record<string, unknown>>): Promise<void> {
  const stop = new AbortController();
  stops.set(id, stop);
  try {
    send({ id, answer: await work({ signal: stop.signal, progress: (progress) => send({ id, progress }) }) });
  } catch (error) {
    const { code, message } = toCuvetteError(error);
    send({ id, error: { code, message } });
  } finally {
    stops.delete(id);
  }
}

function send(message: FromLabThread): void {
  parentPort?.postMessage(message);
}
