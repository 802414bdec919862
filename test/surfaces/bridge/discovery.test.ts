import { describe, expect, it } from 'vitest';
import type { ProcessInfo } from '../../../src/process-tree.ts';
import { chooseServer, chooseService, isInsideAgent, sessionIn } from '../../../src/surfaces/bridge/discovery.ts';
import type { ServerRecord } from '../../../src/surfaces/bridge/server-record.ts';

/** Processes by their pid; each started at the time that its pid says, unless the test says otherwise. */
const NAMES: Record<number, string> = {
  2: 'systemd',
  10: 'tmux',
  20: 'bash',
  100: 'claude',
  101: 'npm',
  150: 'node',
  200: 'claude',
  300: 'cursor',
  400: 'code',
};

function process(pid: number, started = String(pid)): ProcessInfo {
  return { pid, parent: 0, started, name: NAMES[pid] ?? 'sh' };
}

function agentServer(pid: number, lineage: number[], project = '/code/app'): ServerRecord {
  return {
    pid,
    started: String(pid),
    version: '0',
    kind: 'agent',
    lineage: lineage.map((ancestor) => ({ pid: ancestor, started: String(ancestor) })),
    project,
    socket: `/run/${pid}.sock`,
  };
}

function service(pid: number, project: string): ServerRecord {
  return { ...agentServer(pid, [], project), kind: 'service' };
}

function choose(servers: ServerRecord[], ancestors: number[], cwd = '/code/app'): number | undefined {
  const caller = { ancestors: ancestors.map((pid) => process(pid)), cwd, env: {} };
  return chooseServer(servers, caller)?.pid;
}

describe('a shell that an agent started', () => {
  it("gets that agent's server", () => {
    expect(choose([agentServer(1000, [100])], [20, 100, 10, 2])).toBe(1000);
  });

  it('gets it through any number of shells and launchers on either side', () => {
    expect(choose([agentServer(1000, [101, 21, 100])], [31, 32, 33, 100, 20, 10, 2])).toBe(1000);
  });

  it('gets it wherever the shell stands', () => {
    expect(choose([agentServer(1000, [100])], [20, 100], '/somewhere/else')).toBe(1000);
  });

  it('does not get the server of another agent in the same folder', () => {
    const servers = [agentServer(1000, [100]), agentServer(2000, [200])];
    expect(choose(servers, [20, 100, 10])).toBe(1000);
    expect(choose(servers, [21, 200, 10])).toBe(2000);
  });

  it("gets the nearest agent's when one agent runs another", () => {
    const servers = [agentServer(1000, [100]), agentServer(2000, [200])];
    expect(choose(servers, [20, 200, 21, 100, 10])).toBe(2000);
  });

  it('gets a server whose agent has an unknown name', () => {
    expect(choose([agentServer(1000, [150])], [20, 150, 10])).toBe(1000);
  });

  it('prefers the process tree to a service in its own folder', () => {
    const servers = [service(3000, '/code/app'), agentServer(1000, [100], '/code')];
    expect(choose(servers, [20, 100])).toBe(1000);
  });

  it('does not take a later process with the same pid for its agent', () => {
    const reborn = { ancestors: [process(20), process(100, 'later')], cwd: '/elsewhere', env: {} };
    expect(chooseServer([agentServer(1000, [100])], reborn)).toBeUndefined();
  });
});

describe('two servers of one agent', () => {
  const servers = [agentServer(1000, [100], '/code/app'), agentServer(2000, [100], '/code/site')];

  it('are told apart by folder', () => {
    expect(choose(servers, [20, 100], '/code/app')).toBe(1000);
    expect(choose(servers, [20, 100], '/code/site/src')).toBe(2000);
  });

  it('are told apart by the innermost project', () => {
    const nested = [agentServer(1000, [400], '/code'), agentServer(2000, [400], '/code/site')];
    expect(choose(nested, [20, 400], '/code/site/src')).toBe(2000);
    expect(choose(nested, [20, 400], '/code/other')).toBe(1000);
  });

  it('in one folder are ambiguous, and the error lists their pids', () => {
    const same = [agentServer(1000, [100]), agentServer(2000, [100])];
    expect(() => choose(same, [20, 100])).toThrow(/--server 1000 {3}\/code\/app\n {2}--server 2000 {3}\/code\/app/);
  });

  it('are ambiguous for a shell outside both folders', () => {
    expect(() => choose(servers, [20, 100], '/elsewhere')).toThrow(/--server 1000[\s\S]*--server 2000/);
  });

  it('are ambiguous together only with each other', () => {
    const others = [...servers, agentServer(3000, [200], '/elsewhere')];
    expect(() => choose(others, [20, 100], '/elsewhere')).toThrow(/^(?![\s\S]*3000)[\s\S]*--server 1000/);
  });
});

describe('a shell below an agent that has no server', () => {
  it("never gets another agent's server by folder", () => {
    expect(choose([agentServer(1000, [100])], [20, 200, 10])).toBeUndefined();
    expect(choose([agentServer(1000, [100])], [20, 300, 10])).toBeUndefined();
  });

  it('gets a service of its folder', () => {
    expect(choose([agentServer(1000, [100]), service(3000, '/code/app')], [20, 200])).toBe(3000);
  });
});

describe('a shell of a person', () => {
  it('gets the service of its folder, from anywhere below it', () => {
    expect(choose([service(3000, '/code/app')], [20, 10, 2])).toBe(3000);
    expect(choose([service(3000, '/code/app')], [20, 10, 2], '/code/app/src/deep')).toBe(3000);
  });

  it("gets an agent's server by folder", () => {
    expect(choose([agentServer(1000, [100])], [20, 10, 2])).toBe(1000);
  });

  it('gets the service of the innermost project', () => {
    const servers = [service(3000, '/'), service(3001, '/code'), service(3002, '/code/app')];
    expect(choose(servers, [20], '/code/app/src')).toBe(3002);
    expect(choose(servers, [20], '/code/application')).toBe(3001);
    expect(choose(servers, [20], '/home')).toBe(3000);
  });

  it('gets none of a folder whose name only begins alike', () => {
    expect(choose([service(3000, '/code/app')], [20], '/code/app2')).toBeUndefined();
    expect(choose([service(3000, '/code/app')], [20], '/code')).toBeUndefined();
  });

  it('is asked which, when two have the same project', () => {
    expect(() => choose([service(3000, '/code/app'), agentServer(1000, [100])], [20])).toThrow(
      'Several servers fit this shell equally well',
    );
  });

  it('gets none when there is none', () => {
    expect(choose([], [20, 10])).toBeUndefined();
  });
});

describe('isInsideAgent', () => {
  const inside = (ancestors: number[], env: NodeJS.ProcessEnv = {}) =>
    isInsideAgent({ ancestors: ancestors.map((pid) => process(pid)), cwd: '/', env });

  it('is true for a shell below a known agent', () => {
    expect(inside([20, 100, 10])).toBe(true);
    expect(inside([20, 300])).toBe(true);
  });

  it("is true for a shell with an agent's variable, whatever the agent's process is called", () => {
    expect(inside([20, 150], { CLAUDECODE: '1' })).toBe(true);
    expect(inside([20, 150], { CLAUDECODE: '' })).toBe(false);
  });

  it('is false for the shell of a person', () => {
    expect(inside([20, 10, 2], { TERM: 'xterm', PATH: '/bin' })).toBe(false);
  });
});

describe('a shell of an agent that is connected over HTTP', () => {
  const overHttp = (pid: number, project: string) => ({ ...service(pid, project), url: `http://127.0.0.1:${pid}` });
  const inside = (cwd: string) => ({ ancestors: [process(20), process(100)], cwd, env: {} });

  it('gets the one service that serves HTTP on this machine, wherever it was started', () => {
    const servers = [overHttp(1000, '/srv'), service(2000, '/background')];
    expect(chooseServer(servers, inside('/code/app'))).toBeUndefined();
    expect(chooseService(servers, inside('/code/app'))?.pid).toBe(1000);
  });

  it('has to choose between two, and is shown their addresses', () => {
    const servers = [overHttp(1000, '/srv'), overHttp(2000, '/opt')];
    expect(() => chooseService(servers, inside('/code/app'))).toThrow(
      /--server 2000 {3}\/opt {3}http:\/\/127.0.0.1:2000/,
    );
  });

  it('means the session of agents: outside of the folder always, within it once there is one', () => {
    expect(sessionIn(overHttp(1000, '/srv'), inside('/code/app'))).toBe('agents');
    expect(sessionIn(overHttp(1000, '/code'), inside('/code/app'))).toBe('agents if any');
  });

  it("means its agent's own session, where the agent started the server", () => {
    expect(sessionIn(agentServer(1000, [100]), inside('/code/app'))).toBeUndefined();
  });

  it('is one only below an agent', () => {
    const person = { ancestors: [process(20)], cwd: '/code/app', env: {} };
    expect(chooseService([overHttp(1000, '/srv')], person)).toBeUndefined();
    expect(sessionIn(overHttp(1000, '/code'), person)).toBeUndefined();
  });
});
