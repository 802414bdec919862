/**
 * Measures how long another caller waits for its answers while a service is attacked: runs the files of attacks one after the other, each with a caller
 * beside it, and prints its p99 before and during them. `npm run bench:attack -- NAME…` runs some of the files. Writes JSON.
 */

import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { printTable, say } from './table.mjs';

const root = resolve(import.meta.dirname, '..');
/** Milliseconds that another caller's p99 may grow by. */
const BOUND = 100;
/** The soak has no quiet time, and a server that is killed answers nobody. */
const WITHOUT = ['soak', 'killings'];
const wanted = process.argv.slice(2);

const names = readdirSync(join(root, 'test', 'attack'))
  .flatMap((file) => /^(.*)\.test\.ts$/.exec(file)?.[1] ?? [])
  .filter((name) => (wanted.length > 0 ? wanted.includes(name) : !WITHOUT.includes(name)));
const work = mkdtempSync(join(tmpdir(), 'cvb-'));
const report = names.map(measure);
rmSync(work, { recursive: true, force: true });

printTable([
  ['file', 'quiet p99', 'p99 during', 'difference', 'at most', 'met'],
  ...report.map(({ name, problem, quiet, during, difference, isMet }) =>
    problem
      ? [name, '-', '-', '-', ms(BOUND), problem]
      : [name, ms(quiet), ms(during), ms(difference), ms(BOUND), isMet ? 'yes' : 'NO'],
  ),
]);
mkdirSync(join(root, 'bench', 'results'), { recursive: true });
writeFileSync(join(root, 'bench', 'results', 'attack.json'), `${JSON.stringify(report, null, 2)}\n`);
process.exitCode = report.every(({ isMet }) => isMet) ? 0 : 1;

function measure(name) {
  say(`measuring: ${name}`);
  const latencies = join(work, `${name}.jsonl`);
  const args = [join(root, 'node_modules', 'vitest', 'vitest.mjs'), 'run', '--project', 'attack'];
  const { status, stdout } = spawnSync(process.execPath, [...args, `test/attack/${name}.test.ts`], {
    cwd: root,
    env: { ...process.env, CUVETTE_LATENCIES: latencies },
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (status !== 0) say(stdout);
  try {
    const { quiet, during, calls, worst, worstDuring } = JSON.parse(readFileSync(latencies, 'utf8'));
    const difference = during - quiet;
    return { name, quiet, during, difference, calls, worst, worstDuring, isMet: difference <= BOUND };
  } catch (error) {
    return {
      name,
      problem: status === 0 ? `nothing was measured: ${error.message}` : 'its tests failed',
      isMet: false,
    };
  }
}

function ms(value) {
  return `${Math.round(value)} ms`;
}
