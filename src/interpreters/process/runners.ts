/**
 * Keepers of programs that sessions of a single call borrow, one after the other: to hand one on is faster than to make one.
 * Nothing of a call stays in a keeper, which never runs user code itself. They end with this server.
 * A confined one has namespaces that a call may leave something in: it serves one call, and another is made in its place.
 */

import { join } from 'node:path';
import { findProcess } from '../../process-tree.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import type { LiveInterpreter } from '../interpreter.ts';
import { connectDriver } from '../python/driver.ts';
import type { ZygoteSpec, Zygotes } from '../python/zygotes.ts';

export interface Runners {
  /** A keeper for one call; `stop` gives it back. */
  borrow(): Promise<LiveInterpreter>;
  /** Makes one ahead of the first call. */
  prepare(): Promise<void>;
  close(): Promise<void>;
}

interface Runner {
  keeper: LiveInterpreter;
  isBusy: boolean;
  isLost: boolean;
  onLost: (() => void)[];
}

const MOST_IDLE = 16;
/** Confined ones that are made ahead of calls. */
const READY = 4;

export function createRunners(
  runtime: string,
  zygotes: Zygotes,
  spec: () => Promise<ZygoteSpec>,
  sandbox?: Sandbox,
): Runners {
  const idle: Runner[] = [];
  const all = new Set<Runner>();
  let count = 0;
  let starting = 0;
  let isClosed = false;

  async function start(): Promise<Runner> {
    count += 1;
    const socket = join(sandbox?.runtime ?? runtime, 'k', `r.${process.pid}.${count}`, 'sock');
    const owner: [number, string] = [process.pid, findProcess(process.pid)?.started ?? ''];
    await zygotes.spawn(await spec(), {
      socket: sandbox ? sandbox.inside(socket) : socket,
      cwd: '/',
      env: {},
      linger: 1,
      startup: null,
      owner,
    });
    const keeper = await connectDriver(socket);
    if (!keeper) throw new Error('the keeper of a program ended as soon as it had started');
    const runner: Runner = { keeper, isBusy: false, isLost: false, onLost: [] };
    all.add(runner);
    keeper.onLost(() => {
      runner.isLost = true;
      all.delete(runner);
      for (const listener of runner.onLost) listener();
    });
    return runner;
  }

  async function giveBack(runner: Runner): Promise<void> {
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
    start()
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

  function lend(runner: Runner): LiveInterpreter {
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

  async function stopAll(): Promise<void> {
    await Promise.all([...all].map(({ keeper }) => keeper.stop()));
  }

  return {
    async borrow() {
      let runner = idle.pop();
      while (runner?.isLost) runner = idle.pop();
      return lend(runner ?? (await start()));
    },
    async prepare() {
      idle.push(await start());
      if (sandbox) refill();
    },
    async close() {
      isClosed = true;
      await stopAll();
    },
  };
}
