/** Runs a tunnel's program once: until it tells its address, and until it ends. The program knows no secret of ours, and does not outlive us. */

import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { TunnelClient } from './tunnel-clients.ts';

export interface TunnelProcess {
  /** Nothing, if it ended before it had one. */
  readonly url: Promise<string | undefined>;
  /** In words: why, and what it said last. */
  readonly ended: Promise<string>;
  close(): Promise<void>;
}

/** All that it is given: what a program needs to run, to reach the network, and to know its own account. */
const PASSED =
  /^(PATH|HOME|USER|LOGNAME|LANG|LC_\w+|TZ|TMPDIR|XDG_\w+|(https?|all|no)_proxy|SSL_CERT_(FILE|DIR)|(NGROK|TUNNEL)_\w+)$/i;
const SECRET = /TOKEN|KEY|SECRET|PASS/i;
const LINES = 10;
/** Milliseconds from asking it to end until it is made to. */
const GRACE = 3000;
/** Ends the group of the tunnel if its own input ends, as it does when this process is killed; a line says that there is nothing to do. */
const WATCH = 'read -r _ || { kill -s TERM -- "-$1"; sleep 3; kill -s KILL -- "-$1"; } 2>/dev/null';

export function startTunnelProcess(client: TunnelClient, address: string, patience: number): TunnelProcess {
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => PASSED.test(name)));
  const child = spawn(client.path, client.args(address), {
    cwd: '/',
    detached: true,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const unwatch = watch(child);
  const lines: string[] = [];
  let isLate = false;
  let hasEnded = false;

  const ended = new Promise<string>((resolve) => {
    let how = '';
    child.once('error', (error) => {
      how ||= `could not be started: ${error.message}`;
    });
    child.once('exit', (code, signal) => {
      how ||= `ended with ${signal ?? `code ${code}`}`;
      hasEnded = true;
      endGroup(child, 'SIGKILL'); // What it has started would keep its output open.
      unwatch();
    });
    child.once('close', () => resolve(told(client, isLate ? lateness(patience) : how, lines, env)));
  });
  const url = new Promise<string | undefined>((resolve) => {
    const read = (line: string) => {
      if (line.trim() !== '') lines.push(line.trimEnd());
      if (lines.length > LINES) lines.shift();
      const found = client.urlIn(line);
      if (found !== undefined) resolve(new URL(found).origin);
    };
    for (const input of [child.stdout, child.stderr]) createInterface({ input }).on('line', read);
    void ended.then(() => resolve(undefined));
  });

  async function close(): Promise<void> {
    if (hasEnded) return void (await ended); // Its number may be another's by now.
    endGroup(child, 'SIGTERM');
    const timer = setTimeout(() => endGroup(child, 'SIGKILL'), GRACE);
    await ended;
    clearTimeout(timer);
  }

  const timer = setTimeout(() => {
    isLate = true;
    void close();
  }, patience);
  void url.then(() => clearTimeout(timer));
  return { url, ended, close };
}

/** Beside the tunnel, a shell that sees this process go. */
function watch(child: ChildProcess): () => void {
  if (child.pid === undefined) return () => {};
  const watcher = spawn('/bin/sh', ['-c', WATCH, 'sh', String(child.pid)], {
    cwd: '/',
    detached: true,
    env: { PATH: process.env.PATH },
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  watcher.on('error', () => {}); // Without a shell, it is watched by nobody, and works.
  watcher.stdin.on('error', () => {});
  watcher.unref();
  return () => watcher.stdin.end('\n');
}

function endGroup({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch {} // It has ended.
}

function lateness(patience: number): string {
  return `told no address within ${patience / 1000} seconds`;
}

/** Programs repeat the credential that was refused. */
function told({ name }: TunnelClient, how: string, lines: string[], env: NodeJS.ProcessEnv): string {
  const secrets = Object.entries(env).flatMap(([key, value]) => (SECRET.test(key) && value ? [value] : []));
  const safe = lines.map((line) => secrets.reduce((text, secret) => text.replaceAll(secret, '…'), line));
  const last = safe.length === 0 ? 'It said nothing.' : `It said last:\n${safe.map((line) => `  ${line}`).join('\n')}`;
  return `${name} ${how}. ${last}`;
}
