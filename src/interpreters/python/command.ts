/** Runs a command to its end and keeps the last of what it said. */

import { spawn } from 'node:child_process';

export interface CommandResult {
  ok: boolean;
  output: string;
}

const KEPT = 4000;

export function runCommand(
  argv: string[],
  options: { signal?: AbortSignal; timeout: number; onLine?: (line: string) => void },
): Promise<CommandResult> {
  const [command = '', ...args] = argv;
  return new Promise((resolve) => {
    let output = '';
    const child = spawn(command, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      cwd: '/',
      detached: true,
      env: { ...process.env, PYTHONHOME: undefined, PYTHONPATH: undefined, VIRTUAL_ENV: undefined },
    });
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
