/** Starts agents in processes of their own, for tests of which server belongs to whom. */

import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { type CliResult, gone, type Home, kill, MAIN } from './harness.ts';

const FAKE = fileURLToPath(new URL('fake-agent.mjs', import.meta.url));

export interface FakeAgent {
  pid: number;
  server: number;
  tool(name: string, args?: object): Promise<{ content: { text: string }[] }>;
  shell(command: string, cwd?: string): Promise<CliResult>;
  /** Ends the server, then the agent, as if the machine had. */
  crash(): Promise<void>;
  /** Ends the agent; its server sees that and ends in good order. */
  close(): Promise<void>;
}

/** An agent in a process of its own, whose shells are its children. */
export async function startFakeAgent(home: Home, cwd: string, args: string[] = []): Promise<FakeAgent> {
  const child = fork(FAKE, [MAIN, ...args], { cwd, env: home.env(), execArgv: [] });
  const waiting = new Map<number, (result: unknown) => void>();
  let count = 0;
  const ready = new Promise<{ pid: number }>((resolve) => waiting.set(0, resolve as (result: unknown) => void));
  child.on('message', ({ id, result }: { id: number; result: unknown }) => waiting.get(id)?.(result));
  const order = <T>(message: object) =>
    new Promise<T>((resolve) => {
      count += 1;
      waiting.set(count, resolve as (result: unknown) => void);
      child.send({ id: count, ...message });
    });
  const { pid: server } = await ready;
  const agent: FakeAgent = {
    pid: child.pid ?? 0,
    server,
    tool: (tool, args = {}) => order({ tool, args }),
    shell: (shell, folder = cwd) => order({ shell, cwd: folder }),
    async crash() {
      home.agents.delete(agent);
      kill(server);
      await gone(server);
      kill(agent.pid);
      await gone(agent.pid);
    },
    async close() {
      home.agents.delete(agent);
      kill(agent.pid);
      await gone(server);
    },
  };
  home.agents.add(agent);
  // Its first call is over when the bridge is open.
  await agent.tool('execute', { code: '1' });
  return agent;
}
