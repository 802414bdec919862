/** Runs a command of the test run: shows its lines under its name, follows its progress, and ends it only when it shows none for a long time. */

import { spawn } from 'node:child_process';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';

export const ROOT = resolve(import.meta.dirname, '..', '..');
/** A command that cannot get what it needs says so by this status. */
export const CANNOT_RUN = 75;
/** Slow is not hung: a suite shows every test as progress, an install every step. */
const HUNG_AFTER_MS = 20 * 60_000;
const KEPT_LINES = 400;

/** What runs now, by name. */
const running = new Map();

/**
 * Resolves to how it ended: `status`, the last `lines`, `counts` of its tests, `seconds`, and `problem` if it did not end well.
 * With `quiet`, its lines are shown only if it fails. `countLine` reads counts from a line; vitest sends them as messages.
 */
export function run({ name, command, args = [], quiet = false, countLine, hungAfter = HUNG_AFTER_MS }) {
  const began = performance.now();
  const lines = [];
  const counts = { passed: 0, failed: 0, skipped: 0 };
  const child = spawn(command, args, {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    detached: true,
  });
  const state = { child, name, counts, began, lastSign: began, last: '' };
  running.set(child, state);
  const watch = setInterval(() => {
    if (performance.now() - state.lastSign < hungAfter) return;
    state.problem = `no progress for ${hungAfter / 60_000} minutes: it hangs, and was ended`;
    endGroup(child, 'SIGKILL');
  }, hungAfter / 20);

  const onLine = (line) => {
    state.lastSign = performance.now();
    lines.push(line);
    if (lines.length > KEPT_LINES) lines.shift();
    if (line.trim() !== '') state.last = line;
    countLine?.(line, counts);
    if (!quiet) show(name, line);
  };
  for (const stream of [child.stdout, child.stderr]) createInterface({ input: stream }).on('line', onLine);
  child.on('message', ({ passed = 0, failed = 0, skipped = 0 }) => {
    state.lastSign = performance.now();
    counts.passed += passed;
    counts.failed += failed;
    counts.skipped += skipped;
  });

  return new Promise((done) => {
    child.once('error', (error) => {
      state.problem = error.message;
    });
    child.once('close', (status, signal) => {
      clearInterval(watch);
      running.delete(child);
      // What it started and left behind would disturb whatever comes next.
      endGroup(child, 'SIGKILL');
      const problem = state.problem ?? (status === 0 ? undefined : (signal ?? `exit code ${status}`));
      if (quiet && problem && status !== CANNOT_RUN) for (const line of lines) show(name, line);
      done({ status, lines, counts, problem, seconds: (performance.now() - began) / 1000 });
    });
  });
}

export function show(name, line) {
  process.stdout.write(`${name} | ${line}\n`);
}

/** A line about all that runs, for as long as the work goes on. */
export async function withHeartbeat(seconds, work) {
  const began = performance.now();
  const beat = setInterval(() => {
    const all = [...running.values()].map(({ name, counts: { passed, failed }, lastSign, last }) => {
      const done = passed + failed > 0 ? `${passed} passed, ${failed} failed` : last.trim().slice(0, 60);
      const silence = Math.round((performance.now() - lastSign) / 1000);
      return `${name}: ${done}${silence >= seconds ? `, ${silence} s without a sign` : ''}`;
    });
    process.stdout.write(`-- ${clock(performance.now() - began)} ${all.join(' · ')}\n`);
  }, seconds * 1000);
  const stop = (signal) => {
    for (const child of running.keys()) endGroup(child, 'SIGTERM');
    process.exitCode = 1;
    setTimeout(() => process.exit(signal === 'SIGINT' ? 130 : 143), 3000).unref();
  };
  process.once('SIGINT', stop).once('SIGTERM', stop);
  try {
    return await work();
  } finally {
    clearInterval(beat);
  }
}

/** Minutes and seconds. */
export function clock(milliseconds) {
  const seconds = Math.round(milliseconds / 1000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}

function endGroup({ pid }, signal) {
  try {
    process.kill(-pid, signal);
  } catch {
    // It has ended, and all that it started has, too.
  }
}
