/**
 * Keepers of programs that sessions of a single call borrow, one after the other: to hand one on is faster than to make one.
 * Nothing of a call stays in a keeper, which never runs user code itself. They end with this server.
 */

import { join } from 'node:path';
import { findProcess } from '../../process-tree.ts';
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

export function createRunners(runtime: string, zygotes: Zygotes, spec: () => Promise<ZygoteSpec>): Runners {
  const idle: Runner[] = [];
  const all = new Set<Runner>();
  let count = 0;

  async function start(): Promise<Runner> {
    count += 1;
    const socket = join(runtime, 'k', `r.${process.pid}.${count}`, 'sock');
    const owner: [number, string] = [process.pid, findProcess(process.pid)?.started ?? ''];
    await zygotes.spawn(await spec(), { socket, cwd: '/', env: {}, linger: 1, startup: null, owner });
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
    if (runner.isBusy || idle.length >= MOST_IDLE) return runner.keeper.stop();
    runner.onLost = [];
    idle.push(runner);
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

  return {
    async borrow() {
      let runner = idle.pop();
      while (runner?.isLost) runner = idle.pop();
      return lend(runner ?? (await start()));
    },
    async prepare() {
      idle.push(await start());
    },
    async close() {
      await Promise.all([...all].map(({ keeper }) => keeper.stop()));
    },
  };
}
