/** Starts `cuvette lab serve --engine torch` as a process with its own home, and agents with other homes that attach it. */

import { afterAll, expect, inject } from 'vitest';
import type { CallTool } from '../../../../src/lab/demo/experiments.ts';
import { type Agent, type Answer, createHome, type Home, kill, startAgent, startCli } from '../../../e2e/harness.ts';

/** Milliseconds for whatever an agent asks, on a machine that has much else to do. */
const PATIENCE = 9 * 60_000;
/** A secret of the user who serves the lab, in the environment of the server. */
export const SERVERS_SECRET = 'hf_which-only-the-server-has';

export interface ServedLab {
  home: Home;
  /** Of the server. */
  pid: number;
  url: string;
  token: string;
  /** What it has written there. */
  stdout(): string;
  stderr(): string;
  /** Its exit status. */
  done: Promise<number | null>;
}

export interface RemoteAgent extends Agent {
  home: Home;
  /** What its server has written to its log, which has everything. */
  log(): string;
  /** The answer of a tool, which must not be an error. */
  ask(tool: string, args?: Record<string, unknown>): Promise<Answer['structured']>;
  /** The same, of the lab with this session name. */
  askedAt(session_name: string): CallTool;
  /** What a tool says that must be one. */
  refused(tool: string, args?: Record<string, unknown>): Promise<string>;
  /** Runs code beside the model. */
  beside(code: string, args?: Record<string, unknown>): Promise<Answer>;
}

export interface ServeOptions {
  /** The one that ships, if not given. */
  model?: string;
  /** One that has torch. */
  python?: string | null;
}

export interface Served {
  serve(options?: ServeOptions): Promise<ServedLab>;
  serveAndAttach(options?: ServeOptions): Promise<{ lab: ServedLab; agent: RemoteAgent }>;
  /** An agent that shares nothing with the lab but its address and token. */
  attach(lab: Pick<ServedLab, 'url' | 'token'>): Promise<RemoteAgent>;
  /** One that has not attached anything yet. */
  agent(): Promise<RemoteAgent>;
}

/** Whatever a file has started ends with it, and must leave nothing running. */
export function useServed(): Served {
  const homes: Home[] = [];
  const servers: ServedLab[] = [];
  afterAll(async () => {
    for (const { pid } of servers) kill(pid, 'SIGTERM');
    await Promise.all(servers.map(({ done }) => done));
    await Promise.all(homes.map((home) => home.close()));
  });

  function newHome(): Home {
    const home = createHome();
    homes.push(home);
    return home;
  }

  async function agent(): Promise<RemoteAgent> {
    const home = newHome();
    let log = '';
    const onLog = (text: string) => {
      log += text;
    };
    const env = { HOME: home.root, CUVETTE_LOG_LEVEL: 'trace' };
    return { ...withAnswers(await startAgent({ home, cwd: home.project(), env, onLog })), home, log: () => log };
  }

  const served: Served = {
    agent,
    async serve(options) {
      const lab = await start(newHome(), options);
      servers.push(lab);
      return lab;
    },
    async serveAndAttach(options) {
      const lab = await served.serve(options);
      return { lab, agent: await served.attach(lab) };
    },
    async attach({ url, token }) {
      const attached = await agent();
      const answer = await attached.ask('colab_attach', { endpoint: url, token });
      expect(answer).toMatchObject({ ok: true, endpoint: url, health: { engine: 'torch' } });
      return attached;
    },
  };
  return served;
}

async function start(home: Home, { model = 'demo', python }: ServeOptions = {}): Promise<ServedLab> {
  const env = { HOME: home.root, HF_TOKEN: SERVERS_SECRET, CUVETTE_TORCH_PYTHON: python ?? inject('torchPython') };
  const args = ['lab', 'serve', '--engine', 'torch', '--model', model, '--port', '0', '--log-level', 'trace'];
  const { child, stdout, stderr, done } = startCli(args, { home, cwd: home.project(), env, timeout: 0 });
  const isReady = new Promise<void>((resolve) => {
    child.stdout?.on('data', () => {
      if (/Ctrl-C stops it/.test(stdout())) resolve();
    });
  });
  const hasEnded = await Promise.race([isReady.then(() => false), done.then(() => true)]);
  expect(hasEnded, stderr()).toBe(false);
  const find = (pattern: RegExp) => pattern.exec(stdout())?.[1] ?? '';
  const address = { url: find(/Endpoint: (\S+)/), token: find(/Token: +(\S+)/) };
  return { home, pid: child.pid ?? 0, ...address, stdout, stderr, done: done.then(({ code }) => code) };
}

function withAnswers(agent: Agent): Omit<RemoteAgent, 'home' | 'log'> {
  const call = (tool: string, args = {}) => agent.call(tool, args, { timeout: PATIENCE });
  async function ask(tool: string, args?: Record<string, unknown>) {
    const answer = await call(tool, args);
    expect(answer.isError, answer.text).toBe(false);
    return answer.structured;
  }
  return {
    ...agent,
    ask,
    askedAt: (session_name) => (tool, args) => ask(tool, { ...args, session_name }),
    async refused(tool, args) {
      const answer = await call(tool, args);
      expect(answer.isError, answer.text).toBe(true);
      return answer.text;
    },
    beside: (code, args) => agent.execute(code, { interpreter: 'colab', ...args }, { timeout: PATIENCE }),
  };
}
