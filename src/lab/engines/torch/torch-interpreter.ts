/**
 * Runs the Python interpreter that loads the model at startup, and code in it with the model, the tokenizer and the captures as variables, one call
 * after the other. When its worker dies, the next call starts another, which loads the model again.
 */

import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { nanoid } from 'nanoid';
import { CuvetteError } from '../../../errors.ts';
import type {
  ExitReport,
  InterpreterEvent,
  InterpreterState,
  LiveInterpreter,
  Output,
  Variable,
} from '../../../interpreters/interpreter.ts';
import { connectDriver } from '../../../interpreters/python/driver.ts';
import type { Zygotes } from '../../../interpreters/python/zygotes.ts';
import { findProcess } from '../../../process-tree.ts';
import { untilAborted } from '../../core/abort-signals.ts';
import { firstLife } from '../../core/code-runner.ts';

export interface TorchInterpreter {
  execute(code: string, options?: ExecuteOptions): Promise<Executed>;
  state(): Promise<InterpreterState>;
  /** Grows each time that a worker had to be started. No two interpreters have one in common: who asks may know it from the one before. */
  life(): number;
  variables(): Promise<Variable[]>;
  /** A fresh worker, which loads the model again; whatever ran is ended. */
  reset(): Promise<void>;
  /** How its last worker died, if it did; waits a moment for the news. */
  causeOfDeath(): Promise<string | undefined>;
  /** Ends it; the next call starts it again. */
  stop(): Promise<void>;
  /** Ends it for good. */
  close(): Promise<void>;
}

export interface ExecuteOptions {
  signal?: AbortSignal | undefined;
  /** Seconds; none by default. */
  timeout?: number;
  /** Characters that may be printed. */
  limit?: number;
  /** A number for tracebacks; by default its own count. */
  cell?: number;
  /** It is its turn. */
  onStart?(): void;
  onOutput?(output: Output): void;
}

export interface Executed {
  outputs: Output[];
  ending: ExitReport;
  /** Of the worker that it ran in. */
  life: number;
}

export interface TorchInterpreterOptions {
  python: string;
  /** What starts it. */
  zygotes: Zygotes;
  /** Modules to import ahead, in the process that it is forked from. Not for a GPU: what CUDA sets up in a process is of no use in a copy of it. */
  preload?: string[];
  /** Cuvette's folder for sockets. */
  runtime: string;
  /** Where code runs. */
  project: string;
  /** Run in each new worker before its first cell. */
  startup: string;
  /** What code finds in its environment; by default what this process has. */
  env?: NodeJS.ProcessEnv;
}

const OUTPUT_LIMIT = 1_000_000;
/** Milliseconds until the keeper has noticed that its worker is dead. */
const NEWS = 1000;

export function createTorchInterpreter(options: TorchInterpreterOptions): TorchInterpreter {
  const { python, zygotes, preload = [], runtime, project, startup, env = process.env } = options;
  const name = `t.${process.pid}.${nanoid(6)}`;
  let live: Promise<LiveInterpreter> | undefined;
  let queue: Promise<unknown> = Promise.resolve();
  let onEvent: (event: InterpreterEvent) => void = () => {};
  let onLost: () => void = () => {};
  let cells = 0;
  let lives = firstLife();
  let death = unheard();
  let isClosed = false;

  function open(): Promise<LiveInterpreter> {
    if (isClosed) throw new CuvetteError('interpreter_failed', `${python} has been ended. Open the model again.`);
    live ??= start();
    live.catch(() => {
      live = undefined;
    });
    return live;
  }

  async function start(): Promise<LiveInterpreter> {
    const socket = join(runtime, 'k', name, 'sock');
    mkdirSync(join(runtime, 'k'), { recursive: true, mode: 0o700 });
    rmSync(socket, { force: true });
    const owner: [number, string] = [process.pid, findProcess(process.pid)?.started ?? ''];
    const given = Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined);
    const request = { socket, cwd: project, env: Object.fromEntries(given), linger: 1, startup, owner };
    await awaited(zygotes.spawn({ python, preload }, request));
    const found = await connectDriver(socket);
    if (!found) throw new CuvetteError('interpreter_failed', `${python} ended as soon as it had started.`);
    lives += 1;
    found.onEvent((event) => {
      found.acknowledge(event.seq);
      onEvent(event);
      if (event.kind !== 'done' || !event.ending.death) return;
      death.tell(causeOf(event.ending.death));
      lives += 1;
    });
    found.onIdleDeath((cause) => {
      death.tell(cause);
      lives += 1;
    });
    found.onLost(() => {
      live = undefined;
      death.tell('the process beside it was killed');
      onLost();
    });
    return found;
  }

  async function run(code: string, given: ExecuteOptions): Promise<Executed> {
    const { signal, timeout = null, limit = OUTPUT_LIMIT, cell = cells + 1, onOutput } = given;
    signal?.throwIfAborted();
    const interpreter = await untilAborted(open(), signal);
    given.onStart?.();
    death = unheard();
    cells += 1;
    const id = String(cells);
    const outputs: Output[] = [];
    const cancel = () => interpreter.interrupt(id, 'cancelled');
    signal?.addEventListener('abort', cancel, { once: true });
    try {
      return await new Promise<Executed>((resolve, reject) => {
        onLost = () =>
          reject(new CuvetteError('interpreter_failed', `${python} was ended. The next call starts it again.`));
        onEvent = (event) => {
          if (event.id !== id) return;
          if (event.kind === 'done') resolve({ outputs, ending: event.ending, life: lives });
          if (event.kind === 'missing-package') interpreter.answerInstall(event.module, notInstalled(python));
          if (event.kind !== 'output') return;
          outputs.push(event.output);
          onOutput?.(event.output);
        };
        interpreter.execute({ id, code, cell, timeout, limit });
      });
    } finally {
      signal?.removeEventListener('abort', cancel);
      onEvent = () => {};
      onLost = () => {};
    }
  }

  return {
    async execute(code, given = {}) {
      const before = queue;
      const turn = before.then(() => run(code, given));
      queue = turn.catch(() => {});
      await untilAborted(before, given.signal);
      return turn;
    },
    state: async () => (await open()).state,
    variables: async () => (await open()).variables(),
    life: () => lives,
    async reset() {
      await (await open()).reset();
      lives += 1;
    },
    causeOfDeath: () => death.heard,
    stop,
    close() {
      isClosed = true;
      return stop();
    },
  };

  async function stop(): Promise<void> {
    const running = await live?.catch(() => undefined);
    await running?.stop();
  }
}

/** What a zygote is asked keeps no program from ending; this does, until it has answered. */
async function awaited<T>(answer: Promise<T>): Promise<T> {
  const timer = setInterval(() => {}, 60_000);
  return answer.finally(() => clearInterval(timer));
}

/** News that may come, or not. */
function unheard(): { heard: Promise<string | undefined>; tell(cause: string): void } {
  let tell: (cause: string) => void = () => {};
  const told = new Promise<string>((resolve) => {
    tell = resolve;
  });
  return {
    tell: (cause) => tell(cause),
    get heard() {
      return Promise.race([told, sleep(NEWS, undefined, { ref: false })]);
    },
  };
}

function causeOf({ exit, signal, oom }: NonNullable<ExitReport['death']>): string {
  const how = signal ?? `exit status ${exit}`;
  return oom ? `${how}, as the machine was out of memory` : how;
}

function notInstalled(python: string): { installed: false; hint: string } {
  return { installed: false, hint: `Install it where the model is: ${python} -m pip install …` };
}
