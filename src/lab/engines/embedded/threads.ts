/** Starts and ends the engine's threads: one that holds the model and answers requests, and helpers that compute with it. If one is lost, all end. */

import { Worker } from 'node:worker_threads';
import { CuvetteError, messageOf } from '../../../errors.ts';
import { packageFile } from '../../../package-root.ts';
import { awaitAnswer, type PendingRequest } from '../pending-requests.ts';
import { createMemory } from './heap.ts';
import { compileKernel } from './kernel.ts';
import type {
  ComputeWorkerData,
  EngineAnswer,
  EngineWorkerData,
  Work,
  WorkerMessage,
  WorkMessage,
} from './messages.ts';

export interface Threads {
  ask(work: Work, signal?: AbortSignal): Promise<EngineAnswer>;
  close(): Promise<void>;
}

/** What stands for loading the model among the requests that wait. */
const LOADING = -1;

/** The signal ends loading only. */
export async function startThreads(folder: string, count: number, signal?: AbortSignal): Promise<Threads> {
  signal?.throwIfAborted();
  const module = compileKernel();
  const memory = createMemory();
  const pending = new Map<number, PendingRequest<EngineAnswer>>();
  const workers: Worker[] = [];
  let asked = 0;
  let ended: { by: unknown } | undefined;

  const data: EngineWorkerData = { folder, module, memory, threads: count };
  const engine = start('engine-worker.js', data);
  const scratch = await loaded();
  engine.on('message', take);
  for (const address of scratch.slice(1)) {
    const helperData: ComputeWorkerData = { module, memory, scratch: address };
    start('compute-worker.js', helperData);
  }
  // Idle threads keep no program from ending.
  for (const worker of workers) worker.unref();

  return {
    async ask(work, signal) {
      signal?.throwIfAborted();
      if (ended) throw ended.by;
      const id = asked++;
      const aborted = new Int32Array(new SharedArrayBuffer(4));
      const message: WorkMessage = { id, work, aborted };
      const send = () => engine.postMessage(message);
      const cancel = () => void Atomics.store(aborted, 0, 1);
      return awaitAnswer(pending, id, engine, { send, cancel }, signal);
    },

    async close() {
      end(new CuvetteError('internal', 'The engine has been closed. Open the model again.'));
      await Promise.all(workers.map((worker) => worker.terminate()));
    },
  };

  function start(file: string, workerData: EngineWorkerData | ComputeWorkerData): Worker {
    const worker = new Worker(packageFile('dist', file), { workerData });
    workers.push(worker);
    worker.once('error', (error) => end(lost(messageOf(error), error)));
    worker.once('exit', (code) => end(lost(`it ended with code ${code}`)));
    return worker;
  }

  /** Each thread's room of its own, once the model is in memory. */
  async function loaded(): Promise<number[]> {
    const abort = () => end(signal?.reason);
    signal?.addEventListener('abort', abort, { once: true });
    try {
      return await new Promise((resolve, reject) => {
        pending.set(LOADING, { resolve: () => undefined, reject });
        engine.once('message', (message: WorkerMessage) => {
          if (message.kind === 'ready') resolve(message.scratch);
          if (message.kind === 'failed') end(new CuvetteError(message.code, message.message));
        });
      });
    } catch (error) {
      await Promise.all(workers.map((worker) => worker.terminate()));
      throw error;
    } finally {
      pending.delete(LOADING);
      signal?.removeEventListener('abort', abort);
    }
  }

  function take(message: WorkerMessage): void {
    if (message.kind === 'answer') pending.get(message.id)?.resolve(message.answer);
    if (message.kind === 'failed' && message.id !== undefined) {
      pending.get(message.id)?.reject(new CuvetteError(message.code, message.message));
    }
  }

  function end(error: unknown): void {
    if (ended) return;
    ended = { by: error };
    for (const { reject } of pending.values()) reject(error);
    for (const worker of workers) void worker.terminate();
  }
}

function lost(why: string, cause?: unknown): CuvetteError {
  return new CuvetteError('internal', `A thread of the embedded engine was lost: ${why}. Open the model again.`, {
    cause,
  });
}
