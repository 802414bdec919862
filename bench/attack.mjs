/**
 * Measures how long another caller waits for its answers while a service is attacked: runs the files of attacks one after the other, each with a caller
 * beside it, and prints its p99 before and during them. A file that is over soon is run again, until there are calls enough for a p99.
 * `npm run bench:attack -- NAME…` runs some of the files. Writes JSON.
 */

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { printTable, say } from './table.mjs';

const root = resolve(import.meta.dirname, '..');
/** Milliseconds that another caller's p99 may grow by. */
const BOUND = 100;
/** The soak has no quiet time, and a server that is killed answers nobody. */
const WITHOUT = ['soak', 'killings'];
/** With fewer calls, the p99 would be the slowest of all. */
const LEAST_CALLS = 300;
const MOST_RUNS = 12;
const wanted = process.argv.slice(2);

const names = readdirSync(join(root, 'test', 'attack'))
  .flatMap((file) => /^(.*)\.test\.ts$/.exec(file)?.[1] ?? [])
  .filter((name) => (wanted.length > 0 ? wanted.includes(name) : !WITHOUT.includes(name)));
const work = mkdtempSync(join(tmpdir(), 'cvb-'));
const report = names.map(measure);
rmSync(work, { recursive: true, force: true });

printTable([
  ['file', 'calls', 'quiet p99', 'p99 during', 'difference', 'at most', 'met'],
  ...report.map(({ name, problem, calls, quiet, during, difference, isMet }) =>
    problem
      ? [name, '-', '-', '-', '-', ms(BOUND), problem]
      : [name, String(calls), ms(quiet), ms(during), ms(difference), ms(BOUND), isMet ? 'yes' : 'NO'],
  ),
]);
mkdirSync(join(root, 'bench', 'results'), { recursive: true });
writeFileSync(join(root, 'bench', 'results', 'attack.json'), `${JSON.stringify(report, null, 2)}\n`);
process.exitCode = report.every(({ isMet }) => isMet) ? 0 : 1;

function measure(name) {
  say(`measuring: ${name}`);
  const latencies = join(work, `${name}.jsonl`);
  let rows = [];
  for (let run = 0; run < MOST_RUNS && sum(rows, ({ during }) => during.length) < LEAST_CALLS; run += 1) {
    const problem = attack(name, latencies);
    if (problem) return { name, problem, isMet: false };
    rows = readFileSync(latencies, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
  }
  const [quiet, during] = [p99(rows.flatMap((row) => row.quiet)), p99(rows.flatMap((row) => row.during))];
  const slowest = rows
    .flatMap((row) => row.slowest)
    .sort((a, b) => b.took - a.took)
    .slice(0, 10);
  const difference = during - quiet;
  const calls = sum(rows, (row) => row.during.length);
  return { name, runs: rows.length, calls, quiet, during, difference, slowest, isMet: difference <= BOUND };
}

/** Runs the attacks of a file once; returns what went wrong, if something did. */
function attack(name, latencies) {
  const args = [join(root, 'node_modules', 'vitest', 'vitest.mjs'), 'run', '--project', 'attack'];
  const { status, stdout } = spawnSync(process.execPath, [...args, `test/attack/${name}.test.ts`], {
    cwd: root,
    env: { ...process.env, CUVETTE_LATENCIES: latencies },
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (status !== 0) {
    say(stdout);
    return 'its tests failed';
  }
  return existsSync(latencies) ? undefined : 'nothing was measured';
}

function p99(delays) {
  return delays.sort((a, b) => a - b)[Math.floor(delays.length * 0.99)];
}

function sum(rows, numberOf) {
  return rows.reduce((total, row) => total + numberOf(row), 0);
}

function ms(value) {
  return `${Math.round(value)} ms`;
}
