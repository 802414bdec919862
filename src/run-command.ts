/** Runs a command to its end and keeps the last of what it said. */

import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, rmdir } from 'node:fs/promises';
import { constants, setPriority } from 'node:os';
import { join } from 'node:path';
import { removeStaleFiles } from './stale-files.ts';

export interface CommandResult {
  ok: boolean;
  output: string;
}

export interface CommandOptions {
  timeout: number;
  /** A folder for its temporary files, in one of its own that goes with the command: one that is stopped leaves none. */
  scratch: string;
  signal?: AbortSignal;
  /** Nobody waits for it: everything else on the machine goes first. */
  isBackground?: boolean;
  onLine?: (line: string) => void;
}

const KEPT = 4000;
/** How far a command steps back that nobody waits for: it gets a tenth of what others do, and so comes to its end on a machine that is never idle. */
const { PRIORITY_BELOW_NORMAL } = constants.priority;

export async function runCommand(argv: string[], options: CommandOptions): Promise<CommandResult> {
  const { scratch } = options;
  await mkdir(scratch, { recursive: true, mode: 0o700 });
  await removeStaleFiles(scratch, () => true);
  const own = await mkdtemp(join(scratch, 'run-'));
  try {
    return await run(argv, own, options);
  } finally {
    await rm(own, { recursive: true, force: true }).catch(() => {});
    await rmdir(scratch).catch(() => {}); // Another is at work there.
  }
}

function run(argv: string[], temporary: string, options: CommandOptions): Promise<CommandResult> {
  const [command = '', ...args] = argv;
  return new Promise((resolve) => {
    let output = '';
    const child = spawn(command, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      cwd: '/',
      detached: true,
      env: { ...process.env, TMPDIR: temporary, PYTHONHOME: undefined, PYTHONPATH: undefined, VIRTUAL_ENV: undefined },
    });
    if (options.isBackground && child.pid) stepBack(child.pid);
    // The whole group goes: an installer that is stopped leaves no compiler behind.
    const stop = () => {
      try {
        if (child.pid) process.kill(-child.pid, 'SIGKILL');
      } catch {}
    };
    const timer = setTimeout(() => {
      output += '\nIt took too long and was stopped.';
      stop();
    }, options.timeout);
    if (options.signal?.aborted) stop();
    options.signal?.addEventListener('abort', stop, { once: true });
    const hear = (chunk: Buffer) => {
      const text = chunk.toString('utf8');
      output = (output + text).slice(-KEPT);
      for (const line of text.split('\n')) if (line.trim()) options.onLine?.(line.trim());
    };
    child.stdout.on('data', hear);
    child.stderr.on('data', hear);
    child.once('error', (error) => {
      output += error.message;
    });
    child.once('close', (code) => {
      clearTimeout(timer);
      options.signal?.removeEventListener('abort', stop);
      resolve({ ok: code === 0, output: output.trim() });
    });
  });
}

/** Linux shares the processor out among terminal sessions before it looks at priorities, and a detached command is one of its own. */
function stepBack(pid: number): void {
  try {
    setPriority(pid, PRIORITY_BELOW_NORMAL);
    writeFileSync(`/proc/${pid}/autogroup`, String(PRIORITY_BELOW_NORMAL));
  } catch {} // It has ended, or this machine has no such thing.
}
