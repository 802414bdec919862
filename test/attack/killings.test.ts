/**
 * Kills a server under load at random moments, many times, and starts it again at once. What was answered must be there afterwards,
 * sessions must go on, and in the end nothing may be left. CUVETTE_KILLINGS sets how often; CUVETTE_SEED repeats the choices.
 */

import { lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import { afterAll, expect, test } from 'vitest';
import { createHome } from '../e2e/harness.ts';
import { type Caller, ok, type Service, startService } from '../e2e/http/service.ts';
import { endConfinedHome, KEY, SMALL_LIMITS } from './attack.ts';
import { createLuck, type Luck, seedOf } from './luck.ts';
import { extraOf, settled, traceOf } from './traces.ts';

const KILLINGS = Number(process.env.CUVETTE_KILLINGS ?? (process.env.CI ? 50 : 12));
const CALLERS = 5;
/** Milliseconds that a server lives at the most. */
const LONGEST_LIFE = 1500;
/** Milliseconds that code takes at the most, so that it is often at work when its server is killed. */
const SLOWEST = 200;
const LARGE = 20_000;
const SHOWN = 40;
const BRIEFLY = { maxStringLength: 300, maxArrayLength: 3, breakLength: Number.POSITIVE_INFINITY };
const seed = seedOf(process.env.CUVETTE_SEED);

/** A server, from when it listens to when it is killed. */
interface Life {
  service: Service;
  caller: Caller;
  isKilled: boolean;
}

/** A number that grows by one with each call that runs, and of which every answer is remembered. */
interface Counter {
  attempts: number;
  answered: number;
}

interface Kept {
  id: string;
  session_id: string;
  name: string;
  content: string;
}

const home = createHome();
const log: string[] = [];
const total = { calls: 0, cut: 0 };
let life: Promise<Life>;
let newest: Service | undefined;
afterAll(async () => {
  await newest?.stop();
  await endConfinedHome(home);
});

test('everything that was answered survives every kill of the server, and nothing else is left behind', {
  timeout: 600_000,
}, async () => {
  console.log(`killings: seed ${seed}`);
  const luck = createLuck(seed);
  const failures: string[] = [];
  let isOver = false;
  life = begin();
  const survivors = Array.from({ length: CALLERS }, (_, number) =>
    createSurvivor(number, createLuck(seed + number + 1)),
  );
  const load = survivors.map(async (survivor, number) => {
    try {
      while (!isOver && failures.length === 0) await survivor.step();
    } catch (error) {
      failures.push(`${number}: ${error}`);
    }
  });

  let killings = 0;
  while (killings < KILLINGS && failures.length === 0) {
    const now = await life;
    await sleep(luck.below(LONGEST_LIFE));
    // Its groups are known as ours as long as somebody is in them.
    traceOf(home);
    life = replace(now);
    killings += 1;
  }
  isOver = true;
  await Promise.all(load);
  const { service } = await life;
  if (failures.length === 0)
    for (const survivor of survivors) await survivor.expectAll().catch((error) => failures.push(String(error)));
  if (failures.length > 0) console.log(`The last requests:\n${log.slice(-SHOWN).join('\n')}`);
  expect(failures, `CUVETTE_SEED=${seed}`).toEqual([]);

  const incoming = readdirSync(join(home.data, 'files', 'incoming'), { recursive: true, encoding: 'utf8' });
  expect(
    incoming.filter((name) => !new RegExp(`^${service.pid}-\\d+$`).test(name)),
    'uploads cut off',
  ).toEqual([]);
  expect(
    readdirSync(join(home.data, 'sessions')).filter((name) => name.startsWith('.')),
    'half removed',
  ).toEqual([]);
  traceOf(home);
  const { code, stderr } = await service.stop('SIGINT');
  expect([code, stderr]).toEqual([0, '']);
  expect(await settled(orphans), 'what is left').toEqual([]);
  const { calls, cut } = total;
  const kept = survivors.reduce((sum, survivor) => sum + survivor.kept(), 0);
  console.log(`killings: ${killings}, ${calls} calls answered, ${cut} cut off, ${kept} files and results kept`);
});

// -- servers ----------------------------------------------------------------------------------------

async function begin(): Promise<Life> {
  const service = await startService({ home, args: ['--sandbox', 'on'], env: SMALL_LIMITS });
  newest = service;
  return { service, caller: service.as({ 'x-api-key': KEY }), isKilled: false };
}

async function replace(last: Life): Promise<Life> {
  last.isKilled = true;
  const { stderr } = await last.service.stop('SIGKILL');
  expect(stderr).toBe('');
  return begin();
}

/** What a call gives; nothing if its server was killed before the answer. */
async function answerOf<T>(what: string, work: (caller: Caller) => Promise<T | undefined>): Promise<T | undefined> {
  const now = await life;
  try {
    const answer = await work(now.caller);
    if (answer === undefined && !now.isKilled) throw new Error(`Cut off by a server that lives: ${what}`);
    note(`${what} → ${inspect(answer, BRIEFLY)}`);
    total[answer === undefined ? 'cut' : 'calls'] += 1;
    return answer;
  } catch (error) {
    note(`${what} → ${error}`);
    if (!now.isKilled || /^Answered with/.test((error as Error).message)) throw error;
    total.cut += 1;
    return undefined;
  }
}

function note(line: string): void {
  log.push(`${new Date().toISOString().slice(11, 23)} ${line}`);
  if (log.length > SHOWN) log.shift();
}

function orphans(): string[] {
  const nothing = { processes: [], mounts: [], cgroups: [], files: [], sharedMemory: [] };
  const trace = traceOf(home);
  const files = trace.files.filter((path) => lstatSync(path, { throwIfNoEntry: false })?.isSocket());
  return extraOf(nothing, { ...trace, files, sharedMemory: [] });
}

// -- callers ----------------------------------------------------------------------------------------

/** A caller with a session of its own, who takes notes of all that it is answered. */
function createSurvivor(number: number, luck: Luck) {
  const entity_id = `survivor-${number}`;
  const python: Counter = { attempts: 0, answered: 0 };
  const shell: Counter = { attempts: 0, answered: 0 };
  const files: Kept[] = [];
  const results: { event: string; stdout: string }[] = [];
  const others: string[] = [];
  const deleted: string[] = [];
  let secret: string | undefined;
  let serial = 0;

  const unique = () => {
    serial += 1;
    return `${entity_id}.${serial}`;
  };

  async function countInPython(): Promise<void> {
    const begin = `import time\nif "kept" not in globals(): kept = ["${unique()}", 0]`;
    const code = `${begin}\nkept[1] += 1\ntime.sleep(${luck.below(SLOWEST) / 1000})\nprint(*kept)`;
    const [found, value] = (await count(python, 'py', code))?.split(' ') ?? [];
    if (found === undefined) return;
    secret ??= found;
    expect(found, 'variables that were not lost').toBe(secret);
    expectGrowth(python, Number(value));
  }

  async function countInShell(): Promise<void> {
    const code = `echo x >> log.txt; sleep ${luck.below(SLOWEST) / 1000}; wc -l < log.txt`;
    const value = await count(shell, 'bash', code);
    if (value !== undefined) expectGrowth(shell, Number(value));
  }

  async function count(counter: Counter, lang: string, code: string): Promise<string | undefined> {
    counter.attempts += 1;
    const what = `${entity_id} ${lang} ${counter.answered}/${counter.attempts}`;
    const answer = await answerOf(what, (caller) => caller.exec({ lang, code, entity_id }));
    if (answer) expect(`${answer.run.code} ${answer.run.message}`, answer.stderr).toBe('0 null');
    return answer?.stdout;
  }

  async function upload(): Promise<void> {
    const [name, content] = [`${unique()}.txt`, `${unique()}\n`.repeat(luck.oneOf([1, LARGE]))];
    const answer = await answerOf(`${entity_id} upload ${name}`, (caller) =>
      caller.upload(name, content, { entity_id }),
    );
    if (answer) files.push({ id: answer.files[0]?.id ?? '', session_id: answer.session_id, name, content });
  }

  async function write(): Promise<void> {
    const [name, content] = [`${unique()}.txt`, unique()];
    const code = `open("${name}", "w").write("${content}"); None`;
    const answer = await answerOf(`${entity_id} write ${name}`, (caller) => caller.python(code, { entity_id }));
    const file = answer?.files.find((one) => one.name === name);
    if (answer) expect(file, JSON.stringify(answer)).toBeDefined();
    if (file) files.push({ ...file, content });
  }

  async function stream(): Promise<void> {
    const text = unique();
    const done = await answerOf(`${entity_id} stream ${text}`, async (caller) => {
      const events = await caller.stream({ lang: 'py', code: `print("${text}")`, entity_id });
      await events.ended;
      return events.events.find(({ type }) => type === 'done');
    });
    if (!done) return;
    expect(done.stdout).toBe(`${text}\n`);
    results.push({ event: done.eventId.replace(/\d+$/, '0'), stdout: `${text}\n` });
  }

  /** A session that is not needed for long; another server may be the one to delete it. */
  async function beginAnother(): Promise<void> {
    const answer = await answerOf(`${entity_id} new`, (caller) => caller.python('x = 1; open("f", "w").close()'));
    if (answer) others.push(answer.session_id);
  }

  async function deleteAnother(): Promise<void> {
    const id = others.shift();
    if (id === undefined) return;
    const answer = await answerOf(`${entity_id} DELETE ${id}`, (caller) => caller.send('DELETE', `/sessions/${id}`));
    if (!answer) return;
    ok(answer);
    deleted.push(id);
  }

  async function passing(): Promise<void> {
    const answer = await answerOf(`${entity_id} passing`, (caller) => caller.bash('echo $((6 * 7))'));
    if (answer) expect([answer.stdout, answer.run.message]).toEqual(['42\n', null]);
  }

  async function lookAtFile(file = files[luck.below(files.length || 1)]): Promise<void> {
    if (!file) return;
    const what = `${entity_id} file ${file.name}`;
    const bytes = await answerOf(`${what} of the store`, (caller) => caller.download(file));
    if (bytes) expect(String(bytes)).toBe(file.content);
    const answer = await answerOf(`${what} of the workspace`, (caller) =>
      caller.bash(`cat ${file.name}`, { entity_id }),
    );
    if (answer) expect(answer.stdout, answer.stderr).toBe(file.content);
  }

  async function lookAtResult(result = results[luck.below(results.length || 1)]): Promise<void> {
    if (!result) return;
    const { event, stdout } = result;
    const told = await answerOf(`${entity_id} result ${event}`, async (caller) => {
      const { text } = ok(await caller.get('/exec/stream', { 'last-event-id': event }));
      return text.split('\n').find((line) => line.startsWith('data: {"type":"done"'));
    });
    if (told) expect(JSON.parse(told.slice(6))).toMatchObject({ stdout });
  }

  const steps = [
    { weight: 30, step: countInPython },
    { weight: 20, step: countInShell },
    { weight: 10, step: upload },
    { weight: 10, step: write },
    { weight: 10, step: stream },
    { weight: 5, step: beginAnother },
    { weight: 5, step: deleteAnother },
    { weight: 5, step: passing },
    { weight: 5, step: () => lookAtFile() },
    { weight: 5, step: () => lookAtResult() },
  ];

  return {
    step: (): Promise<void> => luck.weighed(steps).step(),
    kept: () => files.length + results.length,
    /** All that was ever answered is there, on a server that lives. */
    async expectAll(): Promise<void> {
      for (const { step } of steps) await step();
      for (const file of files) await lookAtFile(file);
      for (const result of results) await lookAtResult(result);
      const code = 'import os; print("x" in globals(), os.listdir())';
      for (const session_id of deleted.slice(-10)) {
        const answer = await answerOf(`${entity_id} deleted`, (caller) => caller.python(code, { session_id }));
        expect(answer?.stdout).toBe('False []\n');
      }
    },
  };
}

/** More than was ever answered, and no more than was ever asked for. */
function expectGrowth(counter: Counter, value: number): void {
  expect(value).toBeGreaterThan(counter.answered);
  expect(value).toBeLessThanOrEqual(counter.attempts);
  counter.answered = value;
}
