/** One side of a comparison: a process that is asked for one piece of work after the other, a line of JSON each way. */

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

/** The first line says what to open; `ask` sends a piece of work and waits for its answer. */
export async function openSide(command, args, { env, ...opened }) {
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'], env: { ...process.env, ...env } });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const ended = new Promise((resolve) => child.once('exit', resolve));

  async function ask(work) {
    child.stdin.write(`${JSON.stringify(work)}\n`);
    const { value, done } = await lines.next();
    if (done) throw new Error(`${command} ${args[0]} ended with ${await ended}.`);
    return JSON.parse(value);
  }

  return {
    description: await ask(opened),
    ask,
    async close() {
      child.stdin.end();
      await ended;
    },
  };
}
