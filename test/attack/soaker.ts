/** Acts as one caller of the soak: it has a few sessions, takes one step after the other in them, and knows what each must answer. */

import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { waitFor } from '../e2e/harness.ts';
import { type Caller, ok } from '../e2e/http/service.ts';
import type { AttackAnswer, Lang } from './attack.ts';
import type { Luck } from './luck.ts';

/** What all callers share. */
export interface Soaking {
  readonly caller: Caller;
  calls: number;
  faults: number;
  /** How often a session was told that its variables are lost. */
  losses: number;
  /** Sessions that nobody uses any more, and that are to be ended. */
  readonly leftovers: Set<string>;
  /** A line for each answer. */
  readonly log: string[];
}

export interface Soaker {
  step(): Promise<void>;
  /** Ends all its sessions. */
  end(): Promise<void>;
}

/** A session, as it must be. */
interface Place {
  readonly entity: string;
  id: string | undefined;
  /** What its variables are; undefined if there are none. */
  variables: { secret: string; count: number } | undefined;
  shellCount: number;
  note: string;
}

interface Step {
  weight: number;
  isFault?: true;
  run(place: Place): Promise<void>;
}

/** Every secret begins with it, and so does every name of a file that must not be seen elsewhere. */
export const MARK = `soak-${crypto.randomUUID().slice(0, 8)}`;
const PLACES = 4;
const LOST = /variables (of earlier calls )?are lost/;
const SURVIVED = /Variables survived/;
const FATE = /Variables survived|variables are lost/;
/** Milliseconds in which whoever watches a session between its calls has looked at it. */
const LONGEST_REST = 5000;
const LONGEST_LOG = 200;
const SHOWN = 600;

export function createSoaker(soaking: Soaking, number: number, luck: Luck): Soaker {
  const { caller } = soaking;
  let serial = 0;
  const places = Array.from({ length: PLACES }, (_, index) => placeNamed(`${MARK}-${number}-${index}`));

  const unique = (name: string) => {
    serial += 1;
    return `${name}.${serial}`;
  };

  // -- calls ----------------------------------------------------------------------------------------

  function note(what: string, answer: string): void {
    soaking.calls += 1;
    if (soaking.calls % 100 === 0) console.log(`soak: ${soaking.calls} calls`);
    soaking.log.push(`${new Date().toISOString().slice(11, 23)} ${number} ${what} → ${answer.slice(0, SHOWN)}`);
    if (soaking.log.length > LONGEST_LOG) soaking.log.shift();
  }

  async function exec(body: Record<string, unknown>, place?: Place): Promise<AttackAnswer> {
    const reply = await caller.post('/exec', { ...body, ...(place && { entity_id: place.entity }) });
    note(`${place?.entity} ${JSON.stringify(body)}`, `${reply.status} ${reply.text}`);
    return taken(ok(reply).json<AttackAnswer>(), place);
  }

  /** What is true of every answer: it is the session's own, and says if variables are lost. */
  function taken(answer: AttackAnswer, place: Place | undefined): AttackAnswer {
    const told = JSON.stringify(answer);
    const others = told.match(new RegExp(`${MARK}-[\\d-]+`, 'g'))?.filter((entity) => entity !== place?.entity) ?? [];
    expect(others, `secrets of others in ${told}`).toEqual([]);
    // Sessions are let go to make room, but no code here ends an interpreter after its call.
    expect(answer.run.message ?? '').not.toContain('died between calls');
    if (!place) return answer;
    place.id ??= answer.session_id;
    expect(answer.session_id).toBe(place.id);
    if (LOST.test(answer.run.message ?? '')) {
      soaking.losses += 1;
      place.variables = undefined;
    }
    return answer;
  }

  /** Code that counts in the session, or begins to, and the secret that it begins with. */
  function counting(place: Place): { code: string; secret: string } {
    const secret = unique(place.entity);
    return { code: `if "soak" not in globals(): soak = ["${secret}", 0]\nsoak[1] += 1\nprint(*soak)`, secret };
  }

  function expectCount(place: Place, offered: string, stdout: string): void {
    const { secret, count } = place.variables ?? { secret: offered, count: 0 };
    expect(stdout).toBe(`${secret} ${count + 1}\n`);
    place.variables = { secret, count: count + 1 };
  }

  async function count(place: Place): Promise<void> {
    const { code, secret } = counting(place);
    const answer = await exec({ lang: 'py', code }, place);
    expectEnd(answer, null);
    expectCount(place, secret, answer.stdout);
  }

  async function run(lang: Lang, code: string, expected: string, place?: Place): Promise<AttackAnswer> {
    const answer = await exec({ lang, code }, place);
    expectEnd(answer, null);
    expect(answer.stdout).toBe(expected);
    return answer;
  }

  /** A fault that is told with its reason, after which the session's next call works, at once or later. */
  async function fail(lang: Lang, code: string, reasons: string[], place: Place, timeout = 20_000): Promise<void> {
    const answer = await exec({ lang, code, timeout }, place);
    expectEnd(answer, reasons);
    if (lang === 'py' && !['exception', 'exit'].includes(answer.run.reason ?? ''))
      expect(answer.run.message).toMatch(place.variables ? SURVIVED : FATE);
    if (luck.below(4) === 0) await sleep(luck.below(LONGEST_REST));
    await count(place);
  }

  async function remove(place: Place): Promise<void> {
    if (place.id === undefined) return;
    const reply = await caller.send('DELETE', `/sessions/${place.id}`);
    note(`${place.entity} DELETE ${place.id}`, `${reply.status} ${reply.text}`);
    ok(reply);
    Object.assign(place, placeNamed(place.entity));
  }

  // -- steps ----------------------------------------------------------------------------------------

  async function countAtOnce(place: Place): Promise<void> {
    const offers = [counting(place), counting(place), counting(place)];
    const answers = await Promise.all(offers.map(({ code }) => exec({ lang: 'py', code }, place)));
    const printed = answers.map(({ stdout }) => stdout).sort((a, b) => countIn(a) - countIn(b));
    const begun = offers.find(({ secret }) => printed[0]?.startsWith(`${secret} `));
    for (const stdout of printed) expectCount(place, begun?.secret ?? '', stdout);
  }

  async function writeNote(place: Place): Promise<void> {
    place.note = unique(place.entity);
    const answer = await run('py', `open("note.txt", "w").write("${place.note}"); None`, '', place);
    const file = answer.files.find(({ name }) => name === 'note.txt');
    if (!file) throw new Error(`The note was not kept: ${JSON.stringify(answer)}`);
    const bytes = await caller.download(file);
    note('download', `${bytes}`);
    expect(String(bytes)).toBe(place.note);
  }

  /** The same name each time: code finds what was sent last. */
  async function upload(place: Place): Promise<void> {
    const [name, content] = ['up.txt', unique(place.entity)];
    const { session_id } = await caller.upload(name, content, { entity_id: place.entity });
    note(`${place.entity} upload ${content}`, session_id);
    const [lang, code] = luck.oneOf<[Lang, string]>([
      ['py', `print(open("${name}").read())`],
      ['bash', `cat ${name}; echo`],
    ]);
    await run(lang, code, `${content}\n`, place);
    expect(place.id).toBe(session_id);
  }

  async function streamCount(place: Place): Promise<void> {
    const { code, secret } = counting(place);
    const stream = await caller.stream({ lang: 'py', code, entity_id: place.entity });
    const done = await stream.event('done');
    expect(await stream.ended).toBe(true);
    note(`${place.entity} stream ${JSON.stringify(code)}`, JSON.stringify(done));
    const answer = taken(done as unknown as AttackAnswer, place);
    expect(stream.printed()).toBe(answer.stdout);
    expectCount(place, secret, answer.stdout);
  }

  /** The caller goes away while its code runs, and comes back to learn what became of it. */
  async function goAway(place: Place): Promise<void> {
    const { code, secret } = counting(place);
    const body = { lang: 'py', code: `${code}\nimport time; time.sleep(60)`, entity_id: place.entity };
    const stream = await caller.stream(body);
    await waitFor('it has counted', () => stream.printed().endsWith('\n'));
    stream.close();
    const { text } = ok(await caller.get('/exec/stream', { 'last-event-id': stream.events.at(-1)?.eventId ?? '' }));
    note(`${place.entity} gone ${JSON.stringify(body)}`, text);
    const done = text.split('\n').find((line) => line.startsWith('data: {"type":"done"'));
    const answer = taken(JSON.parse(done?.slice(6) ?? 'null') as AttackAnswer, place);
    expectEnd(answer, ['cancelled']);
    if (SURVIVED.test(answer.run.message ?? '')) expectCount(place, secret, answer.stdout);
  }

  async function hangUp(): Promise<void> {
    const away = new AbortController();
    const call = caller.post('/exec', { lang: 'bash', code: `sleep 60; echo ${MARK}` }, { signal: away.signal });
    const outcome = call.then(
      ({ text }) => text,
      (error: Error) => error.name,
    );
    await sleep(luck.below(200));
    away.abort();
    expect(await outcome).toBe('AbortError');
    note('hang up', '');
  }

  /** Nothing of any other call is there, and what this one leaves is seen by no other. */
  async function passing(): Promise<void> {
    const folders = '/tmp /dev/shm /home/user /mnt/data';
    const name = unique(MARK);
    const code = `ls -A ${folders} | grep '^${MARK}'; for d in ${folders}; do echo x > $d/${name}; done; ls /tmp | grep '^${MARK}'`;
    const { session_id } = await run('bash', code, `${name}\n`);
    soaking.leftovers.add(session_id);
  }

  async function shellCount(place: Place): Promise<void> {
    place.shellCount += 1;
    const body = { lang: 'bash', code: 'n=$((n + 1)); echo $n', stateful: true };
    const answer = await exec(body, place);
    expectEnd(answer, null);
    expect(answer.stdout).toBe(`${place.shellCount}\n`);
  }

  async function newSession(): Promise<void> {
    const secret = luck.below(1_000_000);
    const { session_id } = await run('py', `x = ${secret}; print("soak" in globals())`, 'False\n');
    const again = await exec({ lang: 'py', code: 'print(globals().get("x"))', session_id });
    expect(again.session_id).toBe(session_id);
    // Other sessions may have taken its room in the meantime.
    expect(again.stdout).toBe(LOST.test(again.run.message ?? '') ? 'None\n' : `${secret}\n`);
    soaking.leftovers.add(session_id);
  }

  async function fillDisk(place: Place): Promise<void> {
    const folder = luck.oneOf(['/tmp', '/home/user', '/mnt/data']);
    const [lang, code] = luck.oneOf<[Lang, string]>([
      ['py', `with open("${folder}/full", "wb") as file:\n    while True: file.write(bytes(1 << 20))`],
      ['bash', `head -c 200M /dev/zero > ${folder}/full`],
    ]);
    await fail(lang, code, ['disk-quota'], place);
    // What is in the workspace may be kept for download, and then takes room until the session ends.
    if (folder === '/mnt/data') await remove(place);
    else await run('bash', `rm ${folder}/full; echo removed`, 'removed\n', place);
  }

  async function removeAtWork(place: Place): Promise<void> {
    await count(place);
    const stream = await caller.stream({ lang: 'bash', code: 'echo on; sleep 60', entity_id: place.entity });
    await stream.event('stream');
    await remove(place);
    expect(await stream.ended).toBe(true);
    expect(stream.events.at(-1)?.type).toBe('done');
  }

  const program = (lang: Lang, code: (n: number) => string) => async (place: Place) => {
    const n = luck.below(1000);
    await run(lang, code(n), `${n * 7}\n`, luck.below(2) === 0 ? place : undefined);
  };
  const faults = (weight: number, ...all: [Lang, string, string[], number?][]): Step => ({
    weight,
    isFault: true,
    run: (place) => {
      const [lang, code, reasons, timeout] = luck.oneOf(all);
      return fail(lang, code, reasons, place, timeout);
    },
  });

  const steps: Step[] = [
    { weight: 280, run: count },
    { weight: 40, run: countAtOnce },
    { weight: 60, run: writeNote },
    { weight: 60, run: async (place) => void (await run('bash', 'cat note.txt 2>&-; echo', `${place.note}\n`, place)) },
    { weight: 50, run: upload },
    { weight: 60, run: streamCount },
    { weight: 60, run: passing },
    { weight: 40, run: shellCount },
    { weight: 40, run: newSession },
    { weight: 40, run: program('js', (n) => `console.log(${n} * 7)`) },
    { weight: 30, run: program('ts', (n) => `const n: number = ${n}; console.log(n * 7)`) },
    { weight: 20, run: program('bash', (n) => `echo $((${n} * 7))`) },
    {
      weight: 30,
      run: async (place) =>
        void (await run('cpp', '#include <cstdio>\nint main() { puts("built"); }', 'built\n', place)),
    },
    { weight: 30, run: remove },
    { weight: 10, isFault: true, run: removeAtWork },
    { weight: 20, isFault: true, run: goAway },
    { weight: 10, isFault: true, run: hangUp },
    faults(
      30,
      ['py', '1 / 0', ['exception']],
      ['py', 'import sys; sys.exit(3)', ['exit']],
      ['bash', 'exit 3', ['exit']],
    ),
    faults(
      20,
      ['py', 'import os; os._exit(7)', ['process-exit']],
      ['py', 'import ctypes; ctypes.string_at(0)', ['signal']],
      ['py', 'import os; os.kill(os.getpid(), 9)', ['signal']],
      ['bash', 'kill -9 $$', ['signal']],
    ),
    faults(
      15,
      ['py', 'import time; time.sleep(60)', ['timeout'], 200],
      ['bash', 'sleep 60', ['timeout'], 200],
      ['js', 'for (;;);', ['timeout'], 200],
    ),
    faults(15, ['py', 'while True: print("x" * 78)', ['output-limit']], ['bash', 'yes', ['output-limit']]),
    faults(
      14,
      ['py', 'x = b"x" * (800 << 20)', ['oom']],
      ['py', 'x = []\nwhile True: x.append(b"x" * (1 << 20))', ['oom']],
      ['py', 'import os\nwhile True: os.fork()', ['too-many-processes', 'timeout'], 2000],
      ['bash', 'bomb() { bomb | bomb & wait; }; bomb', ['too-many-processes', 'timeout'], 1000],
    ),
    { weight: 6, isFault: true, run: fillDisk },
  ];

  return {
    async step() {
      const { run: take, isFault } = luck.weighed(steps);
      if (isFault) soaking.faults += 1;
      await take(luck.oneOf(places));
    },
    async end() {
      for (const place of places) await remove(place);
    },
  };
}

function placeNamed(entity: string): Place {
  return { entity, id: undefined, variables: undefined, shellCount: 0, note: '' };
}

function countIn(stdout: string): number {
  return Number(stdout.split(' ')[1]);
}

/** It ended for one of the reasons, or well if there are none. */
function expectEnd({ run, stderr }: AttackAnswer, reasons: string[] | null): void {
  expect(reasons ?? [null], `${run.message} ${stderr.slice(0, 1000)}`).toContain(run.reason);
  if (reasons) expect(run.code).not.toBe(0);
  else expect(run.code).toBe(0);
}
