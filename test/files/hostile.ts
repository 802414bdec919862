/** A process that does something over and over while a test goes on, as code does that waits for the right moment. */

import { type ChildProcess, spawn } from 'node:child_process';
import { onTestFinished } from 'vitest';

/** `step` is JavaScript, with `fs` and what `given` names; each of its lines may fail. */
export async function repeat(step: string[], given: Record<string, string>): Promise<ChildProcess> {
  const names = Object.entries(given).map(([name, value]) => `const ${name} = ${JSON.stringify(value)};`);
  const lines = step.map((line) => `try { ${line} } catch {}`);
  const code = `const fs = require('node:fs'); ${names.join(' ')} process.send('ready');
    for (let count = 0; ; count++) { ${lines.join('\n')} }`;
  const child = spawn(process.execPath, ['--input-type=commonjs', '--eval', code], {
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  // Until it has ended, it makes anew what is being removed.
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  await new Promise((resolve) => child.once('message', resolve));
  return child;
}
