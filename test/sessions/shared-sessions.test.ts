import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { CuvetteError } from '../../src/errors.ts';
import { findProcess } from '../../src/process-tree.ts';
import { retryAfterOf } from '../../src/sessions/admission.ts';
import { createSharedSessions, type SharedSessionsOptions } from '../../src/sessions/shared-sessions.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { fakeResources, fakeZygotes, runAtOnce, until } from './fake-keepers.ts';

const ALICE = 'alice';
const BOB = 'bob';

function openSharedSessions(given: Partial<SharedSessionsOptions> = {}) {
  const root = temporaryFolder();
  const zygotes = fakeZygotes();
  zygotes.onSpawn = runAtOnce;
  const resources = given.resources ?? fakeResources(root, zygotes);
  const removed: string[] = [];
  const options: SharedSessionsOptions = {
    resources,
    folder: join(root, 'sessions'),
    mountsWorkspace: false,
    most: 3,
    idle: 60,
    age: 3600,
    keep: 7200,
    onRemoved: (id) => void removed.push(id),
    ...given,
  };
  return { sessions: createSharedSessions(options), options, resources, zygotes, removed, store: resources.store() };
}

function fakeClock(): void {
  vi.useFakeTimers({ toFake: ['Date'] });
  onTestFinished(() => void vi.useRealTimers());
}

const errorOf = (promise: Promise<unknown>) => promise.then(() => undefined).catch((error: unknown) => error);

/** Opens a session, runs code in it, and releases it. */
async function useOnce(sessions: ReturnType<typeof createSharedSessions>, owner: string, id?: string): Promise<string> {
  const sharedSession = await sessions.open({ owner, id });
  await sharedSession.session.execute({ code: 'print x' }).done;
  await sessions.release(sharedSession);
  return sharedSession.session.id;
}

describe('the limit of open sessions', () => {
  it('gives two owners who ask for the same free id while there is no room a session each', async () => {
    const { sessions } = openSharedSessions({ most: 2 });
    await useOnce(sessions, ALICE);
    await useOnce(sessions, ALICE);
    const id = 'a-free-id-of-21-chars';
    const [first, second] = await Promise.all([sessions.open({ owner: ALICE, id }), sessions.open({ owner: BOB, id })]);
    expect([first.owner, second.owner]).toEqual([ALICE, BOB]);
    expect(first.session.id).not.toBe(second.session.id);
    expect([first.session.id, second.session.id]).toContain(id);
  });

  it('evicts the least recently used session when it is reached, and ends its interpreters', async () => {
    fakeClock();
    const { sessions, zygotes } = openSharedSessions({ most: 2 });
    const first = await useOnce(sessions, ALICE);
    vi.advanceTimersByTime(10);
    const second = await useOnce(sessions, ALICE);
    vi.advanceTimersByTime(10);
    await useOnce(sessions, ALICE, first);
    vi.advanceTimersByTime(10);
    const third = await useOnce(sessions, BOB);
    expect(sessions.liveOf(ALICE).map(({ id }) => id)).toEqual([first]);
    expect(sessions.liveOf(BOB).map(({ id }) => id)).toEqual([third]);
    expect(sessions).toMatchObject({ size: 2, evicted: 1 });
    const ended = zygotes.keepers.filter(({ isStopped }) => isStopped).map(({ spawned }) => spawned.cwd);
    expect(ended).toEqual([expect.stringContaining(second)]);
  });

  it('passes by sessions that a call has open and sessions in which code runs', async () => {
    fakeClock();
    const { sessions, zygotes } = openSharedSessions({ most: 3 });
    const open = await sessions.open({ owner: ALICE });
    vi.advanceTimersByTime(10);
    const running = await sessions.open({ owner: ALICE });
    running.session.execute({ code: 'wait' });
    await sessions.release(running);
    vi.advanceTimersByTime(10);
    const idle = await useOnce(sessions, ALICE);
    await sessions.open({ owner: BOB });
    const live = sessions.liveOf(ALICE).map(({ id }) => id);
    expect(live).toEqual([open.session.id, running.session.id]);
    expect(live).not.toContain(idle);
    expect(zygotes.keepers[0]?.isStopped).toBe(false);
  });

  it('refuses one more when all sessions are at work, and says when to try again', async () => {
    const { sessions } = openSharedSessions({ most: 1 });
    const first = await sessions.open({ owner: ALICE });
    const error = await errorOf(sessions.open({ owner: BOB }));
    expect(error).toMatchObject({ code: 'rate_limited' });
    expect(error instanceof CuvetteError && retryAfterOf(error)).toBe(5);
    await sessions.release(first);
    expect((await sessions.open({ owner: BOB })).isNew).toBe(true);
  });

  it('is never exceeded, however many are opened at once', async () => {
    const { sessions } = openSharedSessions({ most: 2 });
    const opened = await Promise.allSettled(Array.from({ length: 6 }, () => sessions.open({ owner: ALICE })));
    expect(opened.filter(({ status }) => status === 'fulfilled')).toHaveLength(2);
    expect(sessions.size).toBe(2);
  });

  it('does not count one session twice that two callers open at once', async () => {
    const { sessions } = openSharedSessions({ most: 1 });
    const [one, other] = await Promise.all([1, 2].map(() => sessions.open({ owner: ALICE, alias: 'a' })));
    expect(one?.session).toBe(other?.session);
    expect([one?.isNew, other?.isNew]).toEqual([true, false]);
  });

  it('keeps an evicted session on disk: opened again, it has its history and is not new', async () => {
    const { sessions } = openSharedSessions({ most: 1 });
    const id = await useOnce(sessions, ALICE);
    await useOnce(sessions, BOB);
    const again = await sessions.open({ owner: ALICE, id });
    expect(again).toMatchObject({ isNew: false, session: { id, size: 1 } });
    const { notes } = await again.session.execute({ code: 'print y' }).done;
    expect(notes.join()).toContain('their variables are lost');
  });
});

describe('the owner of a session', () => {
  it('alone finds it', async () => {
    const { sessions } = openSharedSessions();
    const id = await useOnce(sessions, ALICE);
    expect((await sessions.find(ALICE, id))?.session.id).toBe(id);
    expect(await sessions.find(BOB, id)).toBeUndefined();
    expect(sessions.mayUse(BOB, id)).toBe(false);
    expect(sessions.liveOf(BOB)).toEqual([]);
  });

  it('alone opens it: another who names its id gets a session of their own, or none if it must exist', async () => {
    const { sessions } = openSharedSessions();
    const id = await useOnce(sessions, ALICE);
    const others = await sessions.open({ owner: BOB, id });
    expect(others.session.id).not.toBe(id);
    expect(others).toMatchObject({ owner: BOB, isNew: true });
    expect(await errorOf(sessions.open({ owner: BOB, id, mustExist: true }))).toMatchObject({
      code: 'unknown_session',
    });
  });

  it('alone removes it', async () => {
    const { sessions, removed, store } = openSharedSessions();
    const id = await useOnce(sessions, ALICE);
    expect(await sessions.remove(BOB, id)).toBe(false);
    expect(removed).toEqual([]);
    expect(await sessions.remove(ALICE, id)).toBe(true);
    expect(removed).toEqual([id]);
    expect(store.session(id)).toBeUndefined();
  });

  it('has its aliases alone: the same alias of another owner is another session', async () => {
    const { sessions } = openSharedSessions();
    const mine = await sessions.open({ owner: ALICE, alias: 'notes' });
    expect((await sessions.open({ owner: ALICE, alias: 'notes' })).session.id).toBe(mine.session.id);
    expect((await sessions.open({ owner: BOB, alias: 'notes' })).session.id).not.toBe(mine.session.id);
    expect(sessions.idOf(ALICE, 'notes')).toBe(mine.session.id);
  });

  it('does not get an id under which files of another are kept', async () => {
    const id = 'f'.repeat(21);
    const { sessions } = openSharedSessions({ ownerOf: (asked) => (asked === id ? BOB : undefined) });
    expect((await sessions.open({ owner: ALICE, id })).session.id).not.toBe(id);
    expect((await sessions.open({ owner: BOB, id })).session.id).toBe(id);
  });

  it('is not given a session that another running server has open', async () => {
    const { sessions, store } = openSharedSessions();
    const id = await useOnce(sessions, ALICE);
    const parent = { pid: process.ppid, started: findProcess(process.ppid)?.started ?? '' };
    const row = store.session(id);
    if (row) store.putSession({ ...row, server: parent });
    const next = openSharedSessions({ resources: fakeResources(temporaryFolder(), fakeZygotes(), store) });
    expect(await next.sessions.find(ALICE, id)).toBeUndefined();
    expect(await errorOf(next.sessions.open({ owner: ALICE, id, mustExist: true }))).toMatchObject({
      code: 'unknown_session',
    });
  });
});

describe('removing a session', () => {
  it('that is open interrupts its code, ends its interpreters and removes its folder', async () => {
    const { sessions, zygotes } = openSharedSessions();
    const { session, workspace } = await sessions.open({ owner: ALICE });
    writeFileSync(join(workspace, 'data.csv'), '1');
    const running = session.execute({ code: 'wait' });
    await until(() => zygotes.keepers.length > 0 && zygotes.last().executed.length === 1);
    await sessions.remove(ALICE, session.id);
    expect(await running.done).toMatchObject({ outcome: 'cancelled' });
    expect(zygotes.last().isStopped).toBe(true);
    expect(existsSync(workspace)).toBe(false);
    expect(sessions.size).toBe(0);
  });

  it('keeps a call that comes for it meanwhile from opening what is being removed', async () => {
    const { sessions } = openSharedSessions();
    const id = await useOnce(sessions, ALICE);
    const removal = sessions.remove(ALICE, id);
    const [found, opened] = await Promise.all([
      sessions.find(ALICE, id),
      errorOf(sessions.open({ owner: ALICE, id, mustExist: true })),
      removal,
    ]);
    expect(found).toBeUndefined();
    expect(opened).toMatchObject({ code: 'unknown_session' });
  });

  it('for a single call happens with its release, and leaves no folder', async () => {
    const { sessions } = openSharedSessions();
    const sharedSession = await sessions.open({ owner: ALICE, isForOneCall: true });
    expect(existsSync(sharedSession.workspace)).toBe(true);
    await sessions.release(sharedSession);
    expect(existsSync(sharedSession.workspace)).toBe(false);
    expect(sessions).toMatchObject({ size: 0, evicted: 0 });
  });
});

describe('sessions that nobody uses', () => {
  it('are evicted after the idle time and after the longest age, unless code runs in them', async () => {
    fakeClock();
    const { sessions } = openSharedSessions({ idle: 60, age: 300 });
    const idle = await useOnce(sessions, ALICE);
    const busy = await sessions.open({ owner: ALICE });
    busy.session.execute({ code: 'wait' });
    await sessions.release(busy);
    vi.advanceTimersByTime(59_000);
    await sessions.endExpired();
    expect(sessions.size).toBe(2);
    vi.advanceTimersByTime(2000);
    await sessions.endExpired();
    expect(sessions.liveOf(ALICE)).toEqual([busy.session]);
    for (let times = 0; times < 7; times += 1) {
      vi.advanceTimersByTime(50_000);
      await useOnce(sessions, ALICE, idle);
    }
    vi.advanceTimersByTime(2000);
    await sessions.endExpired();
    expect(sessions.liveOf(ALICE)).toEqual([busy.session]);
    expect(sessions.evicted).toBe(2);
  });

  it('are removed with their history after the time that they are kept', async () => {
    fakeClock();
    const { sessions, removed, store } = openSharedSessions({ idle: 60, keep: 600 });
    const id = await useOnce(sessions, ALICE);
    vi.advanceTimersByTime(599_000);
    await sessions.endExpired();
    expect(removed).toEqual([]);
    vi.advanceTimersByTime(2000);
    await sessions.endExpired();
    expect(removed).toEqual([id]);
    expect(store.executions(id)).toEqual([]);
  });
});

describe('looking at sessions', () => {
  it('shows an owner the own ones alone, by their names, the last used first, and opens none', async () => {
    fakeClock();
    const { sessions } = openSharedSessions({ most: 1 });
    const first = await useOnce(sessions, ALICE, sessions.idOf(ALICE, 'entity:demo'));
    vi.advanceTimersByTime(10);
    const other = await useOnce(sessions, BOB);
    vi.advanceTimersByTime(10);
    const last = await useOnce(sessions, ALICE, sessions.idOf(ALICE, 'default'));
    const told = sessions.list(ALICE, 500).map(({ id, names, isDefault, live }) => [id, names, isDefault, live?.id]);
    expect(told).toEqual([
      [last, [], true, last],
      [first, ['demo'], false, undefined],
    ]);
    expect(sessions.list(ALICE, 1)).toHaveLength(1);
    expect(sessions.look(ALICE, other)).toBeUndefined();
    expect(sessions.look(ALICE, first)?.history.page(10, 10).executions).toMatchObject([{ number: 1, text: 'x\n' }]);
    expect(sessions.liveOf(ALICE).map(({ id }) => id)).toEqual([last]);
  });

  it('tells an owner what happens in the own ones alone, and is not disturbed by a watcher that fails', async () => {
    const { sessions } = openSharedSessions();
    const told: string[] = [];
    sessions.watch(ALICE, () => {
      throw new Error('a watcher that fails');
    });
    const stop = sessions.watch(ALICE, ({ type, session }) => told.push(`${type} ${session}`));
    const id = await useOnce(sessions, ALICE);
    await useOnce(sessions, BOB);
    await until(() => told.length === 4);
    await sessions.remove(ALICE, id);
    expect(told).toEqual([`opened ${id}`, ...Array(3).fill(`execution ${id}`), `closed ${id}`]);
    stop();
    await useOnce(sessions, ALICE);
    expect(told).toHaveLength(5);
  });
});

describe('a server that ends', () => {
  it('leaves the interpreters of its sessions to the next one, which goes on with them', async () => {
    const { sessions, zygotes, resources, options } = openSharedSessions();
    const id = await useOnce(sessions, ALICE);
    await sessions.close(true);
    expect(zygotes.last()).toMatchObject({ isStopped: false, left: { linger: 60 } });
    const next = createSharedSessions({ ...options, resources });
    const again = await next.open({ owner: ALICE, id });
    expect((await again.session.execute({ code: 'print y' }).done).notes).toEqual([]);
    expect(zygotes.keepers).toHaveLength(1);
  });

  it('for good ends them', async () => {
    const { sessions, zygotes, store } = openSharedSessions();
    const id = await useOnce(sessions, ALICE);
    await sessions.close(false);
    expect(zygotes.last().isStopped).toBe(true);
    expect(store.session(id)?.closed).toBe(true);
  });
});
