/** Runs as the worker thread of a lab, so that long computations do not block the event loop of the server. */

import { parentPort, workerData } from 'node:worker_threads';
import { toCuvetteError } from '../../errors.ts';
import type { Output } from '../../interpreters/interpreter.ts';
import type { Lab, LabContext } from '../core/lab.ts';
import { type FromLabThread, OPENING, type ToLabThread } from './lab-thread.ts';
import { type LocalLabOptions, openLocalLab } from './local-lab.ts';

const options: LocalLabOptions = workerData;
const stops = new Map<number, AbortController>();
let opening: Promise<Lab> | undefined;

parentPort?.on('message', (message: ToLabThread) => void take(message));

await answer(OPENING, async (context) => {
  opening = openLocalLab(options, context);
  await opening;
  return {};
});

async function take(message: ToLabThread): Promise<void> {
  if ('abort' in message) return stops.get(message.abort)?.abort();
  if ('close' in message) return close();
  const lab = await opening;
  if (lab) await answer(message.id, (context) => lab.call(message.name, message.args, context));
}

async function close(): Promise<void> {
  for (const stop of stops.values()) stop.abort();
  await opening?.then((lab) => lab.close()).catch(() => {});
  process.exit(0);
}

async function answer(id: number, work: (context: LabContext) => Promise<Record<string, unknown>>): Promise<void> {
  const stop = new AbortController();
  stops.set(id, stop);
  try {
    const context = {
      signal: stop.signal,
      progress: (progress: string) => send({ id, progress }),
      output: (output: Output) => send({ id, output }),
    };
    send({ id, answer: await work(context) });
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
