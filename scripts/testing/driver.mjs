/** Runs the driver's own tests under a Python, each module in a process of its own and several at a time, because they wait more than they work: `driver.mjs PYTHON`, or `driver.mjs PYTHON rich` for those that IPython, pandas and matplotlib matter to. */

import { spawn } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { ROOT } from './run.mjs';

const AT_ONCE = 4;
const FOLDER = join(ROOT, 'python', 'tests');
const [python, kind] = process.argv.slice(2);
const pattern = kind === 'rich' ? /^test_[rs].*\.py$/ : /^test_[^r].*\.py$/;
const modules = readdirSync(FOLDER).filter((name) => pattern.test(name));
if (modules.length === 0) throw new Error(`There are no tests in ${FOLDER}.`);

await Promise.all(Array.from({ length: AT_ONCE }, work));

async function work() {
  for (let module = modules.shift(); module !== undefined; module = modules.shift()) await runModule(module);
}

/** Tells of each test as it ends, and at the end of a module that failed all that it said. */
function runModule(module) {
  const lines = [];
  const args = ['-m', 'unittest', '-v', module.replace(/\.py$/, '')];
  const child = spawn(python, args, { cwd: FOLDER, stdio: ['ignore', 'pipe', 'pipe'] });
  for (const stream of [child.stdout, child.stderr])
    createInterface({ input: stream }).on('line', (line) => {
      lines.push(line);
      if (/ \.\.\. \S/.test(line)) process.stdout.write(`${line}\n`);
    });
  return new Promise((done, fail) => {
    child.once('error', fail);
    child.once('close', (status, signal) => {
      if (status !== 0) {
        process.exitCode = 1;
        const rest = lines.filter((line) => !/ \.\.\. ok$/.test(line));
        process.stdout.write(`${module} ended with ${signal ?? `exit code ${status}`}:\n${rest.join('\n')}\n`);
      }
      done();
    });
  });
}
