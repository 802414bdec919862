/**
 * Lends keepers of programs to sessions of a single call: to reuse one is faster than to start one. Nothing of a call stays in a keeper,
 * which never runs user code itself. A confined keeper has namespaces in which a call may leave something: it serves one call.
 */

import { join } from 'node:path';
import { findProcess } from '../../process-tree.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import type { LiveInterpreter } from '../interpreter.ts';
import type { ZygoteSpec, Zygotes } from '../python/zygotes.ts';

export interface KeeperPool {
  /** A keeper for one call, and the Python beside it as of now; `stop` gives the keeper back. */
  borrow(): Promise<{ keeper: LiveInterpreter; python: string }>;
  /** Makes one ahead of the next call; those of another Python than that of now end. */
  prepare(): Promise<void>;
  close(): Promise<void>;
}

interface PooledKeeper {
  keeper: LiveInterpreter;
  /** The zygote that it comes from, whose files programs see. */
  origin: string;
  isBusy: boolean;
  isLost: boolean;
  onLost: (() => void)[];
}

const MOST_IDLE = 16;
/** Confined ones that are made ahead of calls. */
const READY = 4;

export function createKeeperPool(
  runtime: string,
  zygotes: Zygotes,
  spec: () => Promise<ZygoteSpec>,
  sandbox?: Sandbox,
): KeeperPool {
  const idle: PooledKeeper[] = [];
  const all = new Set<PooledKeeper>();
  let count = 0;
  let starting = 0;
  let isClosed = false;

  async function start(from: ZygoteSpec): Promise<PooledKeeper> {
    count += 1;
    const socket = join(sandbox?.runtime ?? runtime, 'k', `r.${process.pid}.${count}`, 'sock');
    const owner: [number, string] = [process.pid, findProcess(process.pid)?.started ?? ''];
    await zygotes.spawn(from, {
      socket: sandbox ? sandbox.inside(socket) : socket,
      cwd: '/',
      env: {},
      linger: 1,
      startup: null,
      owner,
    });
    const keeper = await zygotes.connect(socket);
    if (!keeper) throw new Error('the keeper of a program ended as soon as it had started');
    const runner: PooledKeeper = { keeper, origin: originOf(from), isBusy: false, isLost: false, onLost: [] };
    all.add(runner);
    keeper.onLost(() => {
      runner.isLost = true;
      all.delete(runner);
      for (const listener of runner.onLost) listener();
    });
    return runner;
  }

  async function giveBack(runner: PooledKeeper): Promise<void> {
    if (runner.isLost || idle.includes(runner)) return;
    if (sandbox) {
      const ending = runner.keeper.stop();
      refill();
      return ending;
    }
    if (runner.isBusy || idle.length >= MOST_IDLE) return runner.keeper.stop();
    runner.onLost = [];
    idle.push(runner);
  }

  function refill(): void {
    if (isClosed || idle.length + starting >= READY) return;
    starting += 1;
    spec()
      .then(start)
      .then(
        (runner) => void idle.push(runner),
        () => {}, // Whoever borrows next is told.
      )
      .finally(() => {
        starting -= 1;
        if (isClosed) void stopAll();
        else refill();
      });
  }

  function lend(runner: PooledKeeper): LiveInterpreter {
    const { keeper } = runner;
    return {
      ...keeper,
      state: keeper.state,
      execute(request) {
        runner.isBusy = true;
        keeper.execute(request);
      },
      onEvent(listener) {
        keeper.onEvent((event) => {
          if (event.kind === 'done') runner.isBusy = false;
          listener(event);
        });
      },
      onLost: (listener) => void runner.onLost.push(listener),
      onIdleDeath: () => {},
      leave: () => void giveBack(runner),
      stop: () => giveBack(runner),
    };
  }

  /** The next idle keeper of this zygote; those of another zygote show programs other files, and are stopped. */
  function take(origin: string): PooledKeeper | undefined {
    for (let runner = idle.pop(); runner; runner = idle.pop()) {
      if (runner.isLost) continue;
      if (runner.origin === origin) return runner;
      void runner.keeper.stop();
    }
    return undefined;
  }

  async function stopAll(): Promise<void> {
    await Promise.all([...all].map(({ keeper }) => keeper.stop()));
  }

  return {
    async borrow() {
      const from = await spec();
      const runner = take(originOf(from)) ?? (await start(from));
      return { keeper: lend(runner), python: from.python };
    },
    async prepare() {
      const from = await spec();
      idle.push(take(originOf(from)) ?? (await start(from)));
      if (sandbox) refill();
    },
    async close() {
      isClosed = true;
      await stopAll();
    },
  };
}

function originOf(spec: ZygoteSpec): string {
  return JSON.stringify(spec);
}
