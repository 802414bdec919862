/** Sets up what the attacks share: a confined service with small limits, a bystander that is called all the while, and the count of what was contained. */

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, expect, onTestFinished } from 'vitest';
import { createHome, type Home, kill, nameOf } from '../e2e/harness.ts';
import { type Caller, type ExecAnswer, ok, type Service, startService } from '../e2e/http/service.ts';
import { createBystander, isLatencyAsked } from './bystander.ts';
import { extraOf, pidsAround, settled, steadyTraceOf, traceOf } from './traces.ts';

export const KEY = 'attack-key-5d1c9a7e40';
/** A variable that the server is started with, and that no code may come to know. */
export const SECRET = 'attack-secret-77ab01ce93';
export const MAX_OUTPUT = 1_000_000;

export const SMALL_LIMITS = {
  CUVETTE_API_KEY: KEY,
  OPERATOR_TOKEN: SECRET,
  CUVETTE_SESSION_MEMORY: '512MiB',
  CUVETTE_SESSION_PROCESSES: '64',
  CUVETTE_SESSION_QUOTA: '256MiB',
  CUVETTE_SESSION_FILE_COUNT: '5000',
  CUVETTE_TIMEOUT: '200',
  CUVETTE_MAX_OUTPUT: String(MAX_OUTPUT),
};

export type Lang = 'py' | 'bash' | 'js' | 'ts' | 'go' | 'cpp';

export interface AttackAnswer extends Omit<ExecAnswer, 'run'> {
  run: ExecAnswer['run'] & { reason: string | null };
}

export interface Attacked {
  readonly service: Service;
  readonly home: Home;
  /** With the key. */
  readonly caller: Caller;
  /** Runs hostile code, in a session of its own unless one is named. It counts as a case once its test has passed. */
  attack(lang: Lang, code: string, more?: Record<string, unknown>): Promise<AttackAnswer>;
  /** The session still runs Python and programs. */
  expectNextCallWorks(entity_id: string): Promise<void>;
  /** Counts cases that are not calls of `attack`. */
  count(cases: number): void;
}

/** The same Python in both kinds of processes: the interpreter, and a program. */
export const IN_BOTH: [string, (code: string) => [Lang, string]][] = [
  ['the interpreter', (code) => ['py', code]],
  ['a program', (code) => ['bash', `cat > /tmp/probe.py <<'END'\n${code}\nEND\npython3 /tmp/probe.py`]],
];

let names = 0;
/** A name for a session that no other test uses. */
export function freshName(): string {
  names += 1;
  return `attack-${process.pid}-${names}`;
}

interface Settings {
  /** Whether another caller is called all the while, where it is asked how long that one waits. */
  hasBystander?: boolean;
  args?: string[];
  env?: Record<string, string | undefined>;
}

type Ending = () => void | Promise<void>;

/** A service for the attacks of a file, after which nothing of it is left. */
export async function useTarget(
  { hasBystander = true, args = [], env = {} }: Settings = {},
  endings: Ending[] = [],
): Promise<Service> {
  const home = createHome();
  const started: { service?: Service } = {};
  // All of them, whatever the ones before have found.
  afterAll(async () => {
    const stop = async () => {
      const { code, stderr } = (await started.service?.stop()) ?? { code: 0, stderr: '' };
      expect([code, stderr]).toEqual([0, '']);
    };
    const problems: unknown[] = [];
    for (const ending of [...endings, stop, () => endConfinedHome(home)]) {
      try {
        await ending();
      } catch (error) {
        problems.push(error);
      }
    }
    if (problems.length > 0) throw problems[0];
  });
  const service = await orClose(home, startService({ home, args, env: { CUVETTE_API_KEY: KEY, ...env } }));
  started.service = service;
  if (hasBystander && isLatencyAsked) {
    const bystander = await orClose(home, createBystander({ service, key: KEY }));
    endings.unshift(() => bystander.stop());
    await bystander.begin();
  }
  return service;
}

/** What goes wrong before the first test leaves no service behind: a file without tests has no end to clean up in. */
async function orClose<T>(home: Home, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    await home.close();
    throw error;
  }
}

/** One that confines, with small limits. Each test ends with the bystander unharmed, and the file with nothing left behind. */
export async function useConfined({ args = [], env = {} }: Settings = {}): Promise<Attacked> {
  const endings: Ending[] = [];
  const settings = { hasBystander: false, args: ['--sandbox', 'on', ...args], env: { ...SMALL_LIMITS, ...env } };
  const service = await useTarget(settings, endings);
  const caller = service.as({ 'x-api-key': KEY });
  const { home } = service;
  await orClose(home, expectConfinement(caller));
  return { service, home, caller, ...(await orClose(home, observe(service, caller, endings))) };
}

/** Attacks are run only where they cannot reach this machine. */
async function expectConfinement(caller: Caller): Promise<void> {
  const { sandbox } = ok(await caller.get('/health')).json<{ sandbox: string }>();
  if (!/^on\b/.test(sandbox)) throw new Error(`The service does not confine, so nothing is tried: ${sandbox}`);
  const spaces = ['pid', 'mnt', 'ipc', 'uts', 'user'];
  const here = spaces.map((name) => readlinkSync(`/proc/self/ns/${name}`));
  const read = `import os\nfor name in ${JSON.stringify(spaces)}: print(os.readlink("/proc/self/ns/" + name))`;
  for (const answer of [await caller.python(read), await caller.bash(`python3 -c '${read}'`)]) {
    const there = answer.stdout.trim().split('\n');
    if (there.length !== spaces.length || there.some((space) => here.includes(space)))
      throw new Error(`Code shares a namespace with this machine, so nothing is tried: ${there} ${answer.stderr}`);
    ok(await caller.send('DELETE', `/sessions/${answer.session_id}`));
  }
}

/** Counts the cases of tests that pass, and tells how many there were. */
export function useCount(): (cases: number) => void {
  let pending = 0;
  let contained = 0;
  afterEach(({ task }) => {
    if (!task.result?.errors?.length) contained += pending;
    pending = 0;
  });
  afterAll(() => console.log(`attacks: ${contained} cases contained`));
  return (cases) => {
    pending += cases;
  };
}

async function observe(service: Service, caller: Caller, endings: Ending[]) {
  const sessions = new Set<string>();
  // All that a service has ready for its next calls is there before anything is tried.
  for (const lang of ['bash', 'py']) {
    const { session_id } = await caller.exec({ lang, code: lang === 'py' ? '1' : 'true' });
    ok(await caller.send('DELETE', `/sessions/${session_id}`));
  }
  const bystander = await createBystander({ service, key: KEY });
  const before = await steadyTraceOf(service.home);
  await bystander.begin();

  afterEach(async () => {
    const ended = [...sessions];
    sessions.clear();
    for (const id of ended) expect([200, 404]).toContain((await caller.send('DELETE', `/sessions/${id}`)).status);
    expect(bystander.takeFailures(), 'what the bystander saw').toEqual([]);
  });
  endings.push(async () => {
    await bystander.stop();
    expect(await settled(() => extraOf(before, traceOf(service.home))), 'what is left behind').toEqual([]);
  });

  const count = useCount();
  return {
    async attack(lang: Lang, code: string, more: Record<string, unknown> = {}): Promise<AttackAnswer> {
      count(1);
      const reply = ok(await caller.post('/exec', { lang, code, entity_id: freshName(), ...more }));
      const answer = reply.json<AttackAnswer>();
      sessions.add(answer.session_id);
      return answer;
    },
    async expectNextCallWorks(entity_id: string): Promise<void> {
      const python = await caller.python('print(6 * 7)', { entity_id });
      expect([python.stdout, python.run.code], python.stderr).toEqual(['42\n', 0]);
      const shell = await caller.bash('echo $((6 * 7))', { entity_id });
      expect([shell.stdout, shell.run.code], shell.stderr).toEqual(['42\n', 0]);
      sessions.add(python.session_id);
    },
    count,
  };
}

/** The answer names the limit that was hit, and is no success. */
export function expectLimit(
  { run, stderr }: AttackAnswer,
  { reason, limit }: { reason: string | string[]; limit: RegExp },
): void {
  expect([reason].flat(), `${run.message} ${stderr.slice(0, 2000)}`).toContain(run.reason);
  expect(run.message).toMatch(limit);
  expect(run.code).not.toBe(0);
}

/** Listens on an abstract socket of this machine for the time of a test, and tells its name. */
export async function listenAbstract(): Promise<string> {
  const name = `attack-${crypto.randomUUID()}`;
  const code = `import socket; s = socket.socket(socket.AF_UNIX); s.bind("\\0${name}"); s.listen(); print("listening", flush=True)\nwhile True: s.accept()`;
  const child = spawn('python3', ['-c', code], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  return name;
}

/** Ends the zygotes of a home, which wait for the next service, and fails if anything else is left. */
export async function endConfinedHome(home: Home): Promise<void> {
  try {
    // A test that failed may not have come to stop its service.
    await Promise.all([...home.agents].map((agent) => agent.close()));
    const { sharedMemory } = traceOf(home);
    for (const pid of pidsAround(home)) if (nameOf(pid) === 'cuvette-zygote') kill(pid, 'SIGTERM');
    const nothing = { processes: [], mounts: [], cgroups: [], files: [], sharedMemory };
    const left = await settled(() => extraOf(nothing, { ...traceOf(home), files: [] }));
    expect(left, 'what is left after the end').toEqual([]);
  } finally {
    // Code may have left folders that are too deep for the tools of this process.
    execFileSync('rm', ['-rf', join(home.root, 'd')]);
    await home.close();
  }
}
