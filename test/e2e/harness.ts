/** Gives tests what they stand on: homes of their own, real servers as an agent starts them, the shell client, and a look at what is left. */

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, delimiter, join } from 'node:path';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type CallToolResult, Client, type RequestOptions } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { afterAll, inject } from 'vitest';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
export const MAIN = join(ROOT, 'dist', 'main.js');
const CUVETTE = [process.execPath, MAIN];
/** Ends what hangs: nothing that works takes as long, on however slow a machine. */
export const HANGS_AFTER = 4 * 60_000;
/** What would make a shell look as if it were an agent's, or a Python behave unlike a user's. */
const REMOVED =
  /^(CUVETTE_|PYTHON(?!DONTWRITEBYTECODE)|VIRTUAL_ENV$|CLAUDECODE$|CURSOR_AGENT$|CODEX_SANDBOX$|GEMINI_CLI$|OPENCODE$|XDG_|EXECUTION_TIMEOUT$|MPLBACKEND$|npm_|NODE_OPTIONS$|VITEST|TEST$)/;

// -- homes ------------------------------------------------------------------------------------------

export interface Home {
  readonly root: string;
  /** Cuvette's own folder of sockets and records. */
  readonly runtime: string;
  readonly data: string;
  /** A new folder in it, for use as a project. */
  project(name?: string): string;
  env(extra?: Record<string, string | undefined>): Record<string, string>;
  readonly agents: Set<{ close(): Promise<void> }>;
  /** Ends what was started in it, and fails if anything stays behind. */
  close(): Promise<void>;
}

export interface HomeOptions {
  /** `none` for tests that start many servers and do not care for what sessions find loaded: most of a start goes into that. */
  preload?: 'none';
}

/** A home for the tests of a file; cleaned up and looked through after them. */
export function useHome(options: HomeOptions = {}): Home {
  const home = createHome(options);
  afterAll(() => home.close());
  return home;
}

export function createHome({ preload }: HomeOptions = {}): Home {
  // Short: the path of a socket may have 107 characters.
  const root = realpathSync(mkdtempSync('/tmp/cv-'));
  const run = join(root, 'r');
  mkdirSync(run, { mode: 0o700 });
  mkdirSync(join(root, 'd'));
  let projects = 0;
  const agents = new Set<{ close(): Promise<void> }>();
  return {
    root,
    runtime: join(run, 'cuvette'),
    data: join(root, 'd', 'cuvette'),
    agents,
    project(name) {
      projects += 1;
      const folder = join(root, name ?? `p${projects}`);
      mkdirSync(folder, { recursive: true });
      return folder;
    },
    env(extra = {}) {
      const given = Object.entries(process.env).filter(([name]) => !REMOVED.test(name));
      const ours = {
        XDG_CACHE_HOME: inject('cacheHome'),
        XDG_DATA_HOME: join(root, 'd'),
        XDG_RUNTIME_DIR: run,
        CUVETTE_PRELOAD: preload,
      };
      const all = [...given, ...Object.entries({ ...ours, ...extra })];
      return Object.fromEntries(all.filter((entry): entry is [string, string] => entry[1] !== undefined));
    },
    async close() {
      await Promise.all([...agents].map((agent) => agent.close()));
      for (const { pid, command } of processesOf(root))
        if (/ serve --idle /.test(command) || nameOf(pid) === 'cuvette-zygote') kill(pid, 'SIGTERM');
      // Without their sockets, keepers end within two seconds.
      rmSync(run, { recursive: true, force: true });
      const left = await leftOvers(root, HANGS_AFTER / 2);
      for (const { pid } of left) kill(pid);
      rmSync(root, { recursive: true, force: true });
      if (left.length > 0)
        throw new Error(`Left running: ${left.map((one) => `${one.pid} ${one.command}`).join('\n')}`);
    },
  };
}

async function leftOvers(root: string, patience: number) {
  const deadline = Date.now() + patience;
  const look = pacedLook(() => processesOf(root), 100);
  let left = await look();
  while (left.length > 0 && Date.now() < deadline) left = await look();
  return left;
}

/** What a server needs to find, so as to run shells and JavaScript. */
export const BARE_TOOLS = ['bash', 'sh', 'node', 'env', 'cat', 'mv', 'rm', 'mkfifo', 'nice'];

/** An environment in which these programs are found, Python, and no others. */
export function environmentWith(home: Home, tools: string[]): { PATH: string; CUVETTE_PYTHON: string } {
  const path = mkdtempSync(join(home.root, 'bin-'));
  linkTools(path, tools);
  const print = 'import sys; print(sys.executable)';
  return { PATH: path, CUVETTE_PYTHON: execFileSync('python3', ['-c', print], { encoding: 'utf8' }).trim() };
}

export function linkTools(folder: string, names: string[]): void {
  const folders = (process.env.PATH ?? '').split(delimiter);
  for (const name of names) {
    const found = folders.map((one) => join(one, name)).find((path) => existsSync(path));
    if (!found) throw new Error(`There is no ${name} on this machine.`);
    symlinkSync(realpathSync(found), join(folder, name));
  }
}

// -- processes --------------------------------------------------------------------------------------

/** The processes that have the path of a home, or the id of a session, in their command line, environment or mounts, and all below those; of them, those that run the command. */
export function processesOf(text: string, command = ''): { pid: number; command: string }[] {
  const all = readdirSync('/proc').map(Number).filter(Number.isInteger);
  const isMounted = mountedIn(text);
  const named = new Set(all.filter((pid) => pid !== process.pid && (isMounted(pid) || isCalled(pid, text))));
  const isOurs = (pid: number): boolean => pid > 1 && (named.has(pid) || isOurs(parentOf(pid)));
  return all
    .filter((pid) => isOurs(pid) && isAlive(pid))
    .map((pid) => ({ pid, command: readProc(pid, 'cmdline').replaceAll('\0', ' ').trim() }))
    .filter((one) => one.command.includes(command));
}

/** Whether a process has it among its mounts, which are read once for all that share them: there are hundreds. */
function mountedIn(text: string): (pid: number) => boolean {
  const known = new Map<string, boolean>();
  return (pid) => {
    const space = linkOf(pid, 'mnt');
    // A mount is told by its path in its own file system, which may begin below /tmp.
    const isMounted = known.get(space) ?? readProc(pid, 'mountinfo').includes(basename(text));
    if (space !== '') known.set(space, isMounted);
    return isMounted;
  };
}

/** Not asked of confined ones, which are known by their mounts: to read the memory of one that is at its limit takes as long as it stands there. */
function isCalled(pid: number, text: string): boolean {
  return isUnconfined(pid) && ['cmdline', 'environ'].some((file) => readProc(pid, file).includes(text));
}

const OWN_PIDS = linkOf(process.pid, 'pid');

function isUnconfined(pid: number): boolean {
  return ['', OWN_PIDS].includes(linkOf(pid, 'pid'));
}

/** Which namespace a process is in; empty if that cannot be known. */
function linkOf(pid: number, kind: string): string {
  try {
    return readlinkSync(`/proc/${pid}/ns/${kind}`);
  } catch {
    return '';
  }
}

export function isAlive(pid: number): boolean {
  const stat = readProc(pid, 'stat');
  return stat !== '' && !/\) [ZX]/.test(stat);
}

export function parentOf(pid: number): number {
  return Number(/\) \S (\d+)/.exec(readProc(pid, 'stat'))?.[1] ?? 0);
}

export function childrenOf(pid: number): number[] {
  return readProc(pid, `task/${pid}/children`).split(' ').filter(Boolean).map(Number);
}

/** The name that a process has given itself. */
export function nameOf(pid: number): string {
  return readProc(pid, 'comm').trim();
}

function readProc(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return '';
  }
}

export function kill(pid: number, signal: NodeJS.Signals = 'SIGKILL'): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

export async function waitFor<T>(
  what: string,
  look: () => T | undefined | false | Promise<T | undefined | false>,
): Promise<T> {
  const deadline = Date.now() + HANGS_AFTER;
  const lookAgain = pacedLook(look, 20);
  while (Date.now() < deadline) {
    const found = await lookAgain();
    if (found) return found;
  }
  throw new Error(`Waited in vain: ${what}`);
}

/** Each look after the first waits, for four times as long as the last one took at least: whoever waits leaves the machine to what is waited for. */
export function pacedLook<T>(look: () => T | Promise<T>, pause: number): () => Promise<T> {
  let wait = 0;
  return async () => {
    await sleep(wait);
    const began = performance.now();
    const found = await look();
    wait = Math.max(pause, 4 * (performance.now() - began));
    return found;
  };
}

/** Where two long texts part; empty if they are the same. */
export function differenceOf(text: string, expected: string): string {
  if (text === expected) return '';
  const at = [...expected].findIndex((_, index) => text[index] !== expected[index]);
  const place = at === -1 ? expected.length : at;
  const excerpt = (whole: string) => JSON.stringify(whole.slice(Math.max(0, place - 20), place + 40));
  return `${text.length} characters for ${expected.length}, at ${place}: ${excerpt(text)} for ${excerpt(expected)}`;
}

export const gone = (pid: number) => waitFor(`process ${pid} ends`, () => !isAlive(pid));

export const allGone = (text: string, command?: string) =>
  waitFor(`the processes of ${text} end`, () => processesOf(text, command).length === 0);

// -- agents -----------------------------------------------------------------------------------------

/** Of these fields, those of the tool that answered are there. */
export type Structured = Record<string, unknown> & {
  session: string;
  execution: number;
  state: string;
  outcome: string;
  reason: { code: string; message: string } | null;
  output: string;
  output_length: number;
  output_file: string;
  next: number | null;
  path: string;
  notes: string[];
  ended_processes: string[];
  variables: Record<string, unknown>[];
  interpreters: { name: string; source: string; state: string; python_path: string; pid: number; version: string }[];
};

export interface Answer {
  text: string;
  structured: Structured;
  content: CallToolResult['content'];
  isError: boolean;
}

export interface AgentOptions {
  home: Home;
  cwd: string;
  era?: 'legacy' | 'modern' | undefined;
  args?: string[];
  env?: Record<string, string | undefined>;
  /** Gets what the server writes to its standard error, which else goes to that of the tests. */
  onLog?(text: string): void;
}

export interface Agent {
  readonly client: Client;
  /** Of the server. */
  readonly pid: number;
  call(tool: string, args?: Record<string, unknown>, options?: RequestOptions): Promise<Answer>;
  execute(code: string, args?: Record<string, unknown>, options?: RequestOptions): Promise<Answer>;
  /** Ends the server as a crash would. */
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** Ends the server as an agent does. */
  close(): Promise<void>;
}

/** Starts a server as an agent does; the agent is this very process. */
export async function startAgent({ home, cwd, era, args = [], env = {}, onLog }: AgentOptions): Promise<Agent> {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [MAIN, 'mcp', ...args],
    env: home.env(env),
    cwd,
    stderr: onLog ? 'pipe' : 'inherit',
  });
  transport.stderr?.on('data', (chunk: Buffer) => onLog?.(chunk.toString('utf8')));
  const client = new Client(
    { name: 'e2e', version: '1' },
    era === 'modern' ? { versionNegotiation: { mode: 'auto' } } : {},
  );
  await client.connect(transport);
  const pid = transport.pid ?? 0;

  async function call(
    tool: string,
    given: Record<string, unknown> = {},
    options: RequestOptions = {},
  ): Promise<Answer> {
    const result = await client.callTool(
      { name: tool, arguments: given, _meta: { 'cuvette/structured': true } },
      { timeout: HANGS_AFTER, ...options },
    );
    const first = result.content[0];
    return {
      text: first?.type === 'text' ? first.text : '',
      structured: result.structuredContent as Structured,
      content: result.content,
      isError: result.isError ?? false,
    };
  }

  const agent: Agent = {
    client,
    pid,
    call,
    execute: (code, more = {}, options) => call('execute', { code, ...more }, options),
    async kill(signal = 'SIGKILL') {
      home.agents.delete(agent);
      kill(pid, signal);
      await gone(pid);
      await client.close();
    },
    async close() {
      home.agents.delete(agent);
      await client.close();
      await gone(pid);
    },
  };
  home.agents.add(agent);
  return agent;
}

/** The pids behind an interpreter: its zygote, its keeper and the process that runs the code. */
export async function pidsOf(agent: Agent): Promise<{ zygote: number; keeper: number; worker: number }> {
  const worker = Number((await agent.execute('import os as _os; _os.getpid()')).structured.output);
  const keeper = parentOf(worker);
  return { worker, keeper, zygote: parentOf(keeper) };
}

// -- the command line -------------------------------------------------------------------------------

export interface CliOptions {
  home: Home;
  cwd: string;
  input?: string;
  env?: Record<string, string | undefined>;
  /** What to call in place of this build. */
  command?: string[];
  /** Milliseconds after which it is ended. */
  timeout?: number;
}

export interface CliResult {
  code: number | null;
  stdout: string;
  stderr: string;
}

export interface RunningCli {
  child: ChildProcess;
  stdout(): string;
  stderr(): string;
  done: Promise<CliResult>;
}

export function startCli(
  args: string[],
  { home, cwd, input, env = {}, command = CUVETTE, timeout = HANGS_AFTER }: CliOptions,
): RunningCli {
  const [program = '', ...before] = command;
  const child = spawn(program, [...before, ...args], { cwd, env: home.env(env), stdio: 'pipe', timeout });
  const { stdout, stderr } = collectOutput(child);
  child.stdin.on('error', () => {}).end(input ?? '');
  const done = new Promise<CliResult>((resolve) => {
    child.once('close', (code) => resolve({ code, stdout: stdout(), stderr: stderr() }));
  });
  return { child, stdout, stderr, done };
}

/** What a process has written so far. */
export function collectOutput(child: { stdout: Readable; stderr: Readable }): { stdout(): string; stderr(): string } {
  const collect = (stream: Readable) => {
    let written = '';
    stream.setEncoding('utf8').on('data', (text: string) => {
      written += text;
    });
    return () => written;
  };
  return { stdout: collect(child.stdout), stderr: collect(child.stderr) };
}

export function runCli(args: string[], options: CliOptions): Promise<CliResult> {
  return startCli(args, options).done;
}

/** Runs it from a shell that has no agent above it: what started it is gone before it begins. */
export async function runOutside(
  args: string[],
  { home, cwd, input, env = {}, command = CUVETTE }: CliOptions,
): Promise<CliResult> {
  const folder = mkdtempSync(join(home.root, 'o-'));
  writeFileSync(join(folder, 'in'), input ?? '');
  const script =
    '(while kill -0 "$PARENT" 2>/dev/null; do sleep 0.02; done; "$@" <"$DIR/in" >"$DIR/out" 2>"$DIR/err"; echo $? >"$DIR/code.new"; mv "$DIR/code.new" "$DIR/code") >/dev/null 2>&1 &';
  const shell = spawn('sh', ['-c', `PARENT=$$; export PARENT; ${script}`, 'sh', ...command, ...args], {
    cwd,
    env: { ...home.env(env), DIR: folder },
    stdio: 'ignore',
  });
  await new Promise((resolve) => shell.once('close', resolve));
  const read = (name: string) => readFileSync(join(folder, name), 'utf8');
  await waitFor('the command ends', () => existsSync(join(folder, 'code')));
  return { code: Number(read('code')), stdout: read('out'), stderr: read('err') };
}
