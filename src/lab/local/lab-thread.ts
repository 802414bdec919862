/** Runs a lab in a worker thread, and sends calls to it. A thread that was lost is started again by the next call. */

import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { CuvetteError, type ErrorCode, messageOf } from '../../errors.ts';
import type { Output } from '../../interpreters/interpreter.ts';
import { packageFile } from '../../package-root.ts';
import { untilAborted } from '../core/abort-signals.ts';
import type { Lab, LabContext } from '../core/lab.ts';
import type { LocalLabOptions } from './local-lab.ts';

export type ToLabThread =
  | { id: number; name: string; args: Record<string, unknown> }
  | { abort: number }
  | { close: true };

export interface FromLabThread {
  id: number;
  progress?: string;
  output?: Output;
  answer?: Record<string, unknown>;
  error?: { code: ErrorCode; message: string };
}

/** The id of the request that opens the model. */
export const OPENING = 0;
/** Milliseconds. */
const CLOSING = 5000;
const NEVER = new AbortController().signal;

interface Pending extends Pick<LabContext, 'progress' | 'output'> {
  resolve(answer: Record<string, unknown>): void;
  reject(error: unknown): void;
}

interface Thread {
  /** Without a message, waits until the model is open. */
  ask(id: number, message: ToLabThread | undefined, context: LabContext): Promise<Record<string, unknown>>;
  isEnded(): boolean;
  isIdle(): boolean;
  end(): Promise<void>;
}

export async function openLabThread(options: LocalLabOptions, context: LabContext): Promise<Lab> {
  let thread = start(options);
  let opened = open(thread, context);
  let calls = OPENING;
  await opened;
  return {
    async call(name, args, callContext) {
      callContext.signal.throwIfAborted();
      if (thread.isEnded()) {
        thread = start(options);
        opened = open(thread, { ...callContext, signal: NEVER });
        // Whoever asked may have given up.
        opened.catch(() => {});
      }
      const current = thread;
      // All callers share the opening, so one that gives up does not end it.
      await untilAborted(opened, callContext.signal);
      calls += 1;
      try {
        return await current.ask(calls, { id: calls, name, args }, callContext);
      } catch (error) {
        // What should not be may have left the engine unusable: the next call starts afresh. An engine in a Python of its own is not touched by what
        // fails here, nor this thread by what fails there; and that Python has variables of code, which must not be lost without need.
        const isSuspect = error instanceof CuvetteError && error.code === 'internal' && !options.torch;
        if (isSuspect && current.isIdle()) await current.end();
        throw error;
      }
    },
    close: () => thread.end(),
  };
}

async function open(thread: Thread, context: LabContext): Promise<void> {
  try {
    await thread.ask(OPENING, undefined, context);
  } catch (error) {
    await thread.end();
    throw error;
  }
}

function start(options: LocalLabOptions): Thread {
  const worker = new Worker(packageFile('dist', 'lab-worker.js'), { workerData: options });
  const pending = new Map<number, Pending>();
  let isEnded = false;
  const fail = (why: string, cause?: unknown) => {
    isEnded = true;
    const error = new CuvetteError(
      'internal',
      `The lab's thread was lost: ${why}. The next call opens the model again.`,
      { cause },
    );
    for (const { reject } of pending.values()) reject(error);
  };
  worker.once('error', (error) => fail(messageOf(error), error));
  worker.once('exit', (code) => fail(`it ended with code ${code}`));
  worker.on('message', ({ id, progress, output, answer, error }: FromLabThread) => {
    const call = pending.get(id);
    if (progress !== undefined) call?.progress(progress);
    if (output) call?.output?.(output);
    if (answer) call?.resolve(answer);
    if (error) call?.reject(new CuvetteError(error.code, error.message));
  });

  return {
    isEnded: () => isEnded,
    isIdle: () => pending.size === 0,
    async ask(id, message, { signal, progress, output }) {
      signal.throwIfAborted();
      const abort = () => {
        worker.postMessage({ abort: id } satisfies ToLabThread);
        pending.get(id)?.reject(signal.reason);
      };
      signal.addEventListener('abort', abort, { once: true });
      try {
        return await new Promise((resolve, reject) => {
          pending.set(id, { progress, ...(output && { output }), resolve, reject });
          // An idle thread keeps no program from ending.
          worker.ref();
          if (message) worker.postMessage(message);
        });
      } finally {
        pending.delete(id);
        if (pending.size === 0) worker.unref();
        signal.removeEventListener('abort', abort);
      }
    },
    async end() {
      const hadEnded = isEnded;
      isEnded = true;
      // An engine may have processes of its own to end.
      if (!hadEnded) await closed(worker);
      await worker.terminate();
    },
  };
}

/** Waits until the thread has ended by itself, or for a few seconds. */
async function closed(worker: Worker): Promise<void> {
  const ended = new Promise((resolve) => worker.once('exit', resolve));
  worker.ref();
  worker.postMessage({ close: true } satisfies ToLabThread);
  await Promise.race([ended, sleep(CLOSING, undefined, { ref: false })]);
}
