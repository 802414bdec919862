/**
 * Interpreters in memory that a test steers, in place of processes: a keeper runs nothing, prints what the test says, and keeps its events
 * until they are acknowledged, as a real one does. Zygotes find it again by its socket, as the next server would.
 */

import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type {
  ExitReport,
  InterpreterEvent,
  InterpreterRequest,
  LiveInterpreter,
  LookRequest,
  Output,
  Variable,
} from '../../src/interpreters/interpreter.ts';
import type { Environment } from '../../src/interpreters/python/environment.ts';
import type { SpawnRequest, Zygotes } from '../../src/interpreters/python/zygotes.ts';
import type { ServerResources } from '../../src/sessions/server-resources.ts';
import type { SessionLimits } from '../../src/sessions/session.ts';
import { openSessionStore, type SessionStore } from '../../src/sessions/session-store.ts';

type Unnumbered = InterpreterEvent extends infer Event
  ? Event extends InterpreterEvent
    ? Omit<Event, 'seq' | 'id'>
    : never
  : never;

export interface FakeKeeper {
  readonly spawned: SpawnRequest;
  readonly executed: InterpreterRequest[];
  readonly interrupted: string[];
  /** Sequence numbers, in the order in which they were acknowledged. */
  readonly acknowledged: number[];
  readonly isStopped: boolean;
  /** How a server has left it to wait for another. */
  readonly left: { linger: number } | undefined;
  /** Set while what servers acknowledge does not arrive. */
  losesAcknowledgements: boolean;
  /** Variables that it says it has. */
  variables: Variable[];
  /** What it was asked to look at. */
  readonly looked: LookRequest[];
  onLook: () => void | Promise<void>;
  /** Is called with each request, once it is received. */
  onExecute: (request: InterpreterRequest) => void;
  onAcknowledge: (seq: number) => void;
  print(text: string, id?: string): void;
  show(output: Output): void;
  /** Ends what runs. */
  finish(ending?: Partial<ExitReport>): void;
  /** The keeper is gone, as if it was killed. */
  die(): void;
  dieIdle(cause: string): void;
}

export const PYTHON = '/fake/bin/python';

export const fakeEnvironment: Environment = {
  state: async () => ({ phase: 'failed', base: INFO, problem: 'it is a fake' }),
  settled: async () => ({ phase: 'failed', base: INFO, problem: 'it is a fake' }),
  installCommand: () => [],
  onProgress() {},
};
const INFO = { version: '3.12.0', executable: PYTHON, prefix: '/fake', site: '/fake/site' };

export interface FakeZygotes extends Zygotes {
  /** Every keeper that was started, in order. */
  readonly keepers: FakeKeeper[];
  /** The newest keeper. */
  last(): FakeKeeper;
  /** What becomes of each new keeper, before anybody is connected to it. */
  onSpawn: (keeper: FakeKeeper) => void | Promise<void>;
}

export function fakeZygotes(): FakeZygotes {
  const bySocket = new Map<string, ReturnType<typeof createKeeper>>();
  const keepers: FakeKeeper[] = [];
  return {
    keepers,
    last() {
      const keeper = keepers.at(-1);
      if (!keeper) throw new Error('no keeper was started');
      return keeper;
    },
    onSpawn() {},
    async spawn(_spec, request) {
      const created = createKeeper(request, () => bySocket.delete(request.socket));
      keepers.push(created.keeper);
      bySocket.set(request.socket, created);
      await this.onSpawn(created.keeper);
    },
    connect: async (socket) => bySocket.get(socket)?.connect(),
    async prepare() {},
    async dismiss() {},
    close() {},
  };
}

function createKeeper(spawned: SpawnRequest, onGone: () => void): { keeper: FakeKeeper; connect(): LiveInterpreter } {
  let running: string | null = null;
  let seq = 0;
  let kept: InterpreterEvent[] = [];
  let connection: { event?: (event: InterpreterEvent) => void; lost: (() => void)[]; idle?: (cause: string) => void } =
    {
      lost: [],
    };
  let isStopped = false;
  let left: { linger: number } | undefined;

  function tell(event: Unnumbered, id: string | null): void {
    if (id === null) throw new Error('nothing runs in this keeper');
    seq += 1;
    const numbered = { ...event, id, seq } as InterpreterEvent;
    kept.push(numbered);
    connection.event?.(numbered);
  }

  function gone(): void {
    onGone();
    const { lost } = connection;
    connection = { lost: [] };
    for (const listener of lost) listener();
  }

  const keeper: FakeKeeper = {
    spawned,
    executed: [],
    interrupted: [],
    acknowledged: [],
    losesAcknowledgements: false,
    variables: [],
    looked: [],
    onLook() {},
    get isStopped() {
      return isStopped;
    },
    get left() {
      return left;
    },
    onExecute() {},
    onAcknowledge() {},
    print: (text, id) => tell({ kind: 'output', output: { type: 'stream', name: 'stdout', text } }, id ?? running),
    show: (output) => tell({ kind: 'output', output }, running),
    finish(ending = {}) {
      const id = running;
      running = null;
      tell({ kind: 'done', ending: { status: 'ok', wall: 0.5, cpu: 0.25, peak: 1000, ended: [], ...ending } }, id);
    },
    die: gone,
    dieIdle: (cause) => connection.idle?.(cause),
  };

  function connect(): LiveInterpreter {
    const mine: typeof connection = { lost: [] };
    connection = mine;
    return {
      state: { pid: 4242, version: '3.12.0', executable: PYTHON, generation: 1, running },
      onEvent(listener) {
        mine.event = listener;
        for (const event of kept) listener(event);
      },
      onLost: (listener) => void mine.lost.push(listener),
      onIdleDeath(listener) {
        mine.idle = listener;
      },
      execute(request) {
        running = request.id;
        keeper.executed.push(request);
        keeper.onExecute(request);
      },
      interrupt(id, why) {
        keeper.interrupted.push(id);
        if (running === id) keeper.finish({ status: 'error', stopped: { why, rung: 'interrupted' } });
      },
      proceed() {},
      acknowledge(upTo) {
        if (connection !== mine) return;
        keeper.onAcknowledge(upTo);
        keeper.acknowledged.push(upTo);
        if (!keeper.losesAcknowledgements) kept = kept.filter((event) => event.seq > upTo);
      },
      answerInstall() {},
      variables: async () => keeper.variables,
      async look(request) {
        keeper.looked.push(request);
        await keeper.onLook();
        return { kind: 'text', type: 'str', text: request.path, length: request.path.length };
      },
      complete: async (_, cursor) => ({ matches: ['completed'], start: 0, end: cursor }),
      async reset() {
        keeper.variables = [];
      },
      leave(linger) {
        left = { linger };
        connection = { lost: [] };
      },
      async stop() {
        isStopped = true;
        gone();
      },
    };
  }
  return { keeper, connect };
}

export const LIMITS: SessionLimits = { timeout: 300, outputLimit: 1000, maxOutput: 100_000, autoInstall: false };

/** Ends code at once: `print TEXT` prints it, and `wait` runs until the test ends it. */
export function runAtOnce(keeper: FakeKeeper): void {
  keeper.onExecute = ({ code }) => {
    if (code.startsWith('wait')) return;
    if (code.startsWith('print ')) keeper.print(`${code.slice('print '.length)}\n`);
    keeper.finish();
  };
}

export function temporaryStore(folder: string): SessionStore {
  const store = openSessionStore(join(folder, 'data'));
  onTestFinished(() => store.close());
  return store;
}

/** What a server has for its sessions, with nothing of it a process. */
export function fakeResources(
  folder: string,
  zygotes: Zygotes = fakeZygotes(),
  store = temporaryStore(folder),
): ServerResources {
  return {
    paths: { cache: join(folder, 'cache'), data: join(folder, 'data'), runtime: join(folder, 'run') },
    runtime: join(folder, 'run'),
    environment: fakeEnvironment,
    zygotes,
    limits: LIMITS,
    programs: { cache: join(folder, 'programs'), strict: true, limits: {} },
    linger: 60,
    store: () => store,
    programZygote: async () => ({ python: PYTHON, preload: [] }),
    warmUp: async () => {},
    close() {},
  };
}

/** What a session is given by its server, with the project for its workspace. */
export function fakeSessionOptions(folder: string, zygotes: Zygotes, store: SessionStore) {
  const { runtime, environment, programs, linger } = fakeResources(folder, zygotes, store);
  const folders = { project: folder, seen: folder, mountsWorkspace: false };
  return { ...folders, runtime, environment, programs, linger, store, zygotes };
}

/** Milliseconds after which a test that would hang is ended. */
const LONGEST_WAIT = 60_000;

/** Waits for something that happens in this process. */
export async function until(condition: () => boolean): Promise<void> {
  for (const start = performance.now(); !condition(); ) {
    if (performance.now() - start > LONGEST_WAIT) throw new Error(`this did not come true: ${condition}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}
