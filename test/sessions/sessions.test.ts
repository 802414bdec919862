import { describe, expect, it } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { findProcess } from '../../src/process-tree.ts';
import { createSessions } from '../../src/sessions/sessions.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { fakeResources, fakeZygotes, runAtOnce, until } from './fake-keepers.ts';

function openSessions(settings: Record<string, string> = {}, root = temporaryFolder()) {
  const zygotes = fakeZygotes();
  zygotes.onSpawn = runAtOnce;
  const resources = fakeResources(root, zygotes);
  const options = { config: readConfig(settings, {}), paths: resources.paths, project: root, resources };
  return { sessions: createSessions(options), options, zygotes, store: resources.store() };
}

const errorOf = (promise: Promise<unknown>) => promise.then(() => undefined).catch((error: unknown) => error);

describe('the sessions of a project', () => {
  it('run code that names no session in the default one, and `new` in another', async () => {
    const { sessions } = openSessions();
    const started = await Promise.all(
      [undefined, undefined, 'new'].map((session) => sessions.start({ code: 'print x', session })),
    );
    const [first, second, other] = started.map(({ session }) => session.id);
    expect(second).toBe(first);
    expect(other).not.toBe(first);
    expect((await started[1]?.finished)?.record).toMatchObject({ number: 2, outcome: 'ok' });
  });

  it('are at most as many as the settings say: the least recently used one is evicted, and keeps its history', async () => {
    const { sessions, zygotes } = openSessions({ maxSessions: '2' });
    const first = await sessions.start({ code: 'print x' });
    await first.finished;
    for (let count = 0; count < 2; count += 1)
      await (await sessions.start({ code: 'print x', session: 'new' })).finished;
    expect(sessions.all()).toHaveLength(2);
    expect(sessions.all()).not.toContain(first.session);
    expect(zygotes.keepers[0]?.isStopped).toBe(true);
    const again = await sessions.start({ code: 'print x' });
    expect(again.session.id).toBe(first.session.id);
    expect((await again.finished).record).toMatchObject({ number: 2, notes: [expect.stringContaining('are lost')] });
  });

  it('refuse one more while code runs in all of them', async () => {
    const { sessions } = openSessions({ maxSessions: '1' });
    await sessions.start({ code: 'wait' });
    expect(await errorOf(sessions.start({ code: 'print x', session: 'new' }))).toMatchObject({ code: 'rate_limited' });
    expect(await errorOf(sessions.use('new', () => {}))).toMatchObject({ code: 'rate_limited' });
  });

  it('have the limits of one caller on executions at once', async () => {
    const { sessions, zygotes } = openSessions({ maxRunning: '1' });
    const first = await sessions.start({ code: 'wait' });
    expect(await errorOf(sessions.start({ code: 'print x', session: 'new' }))).toMatchObject({ code: 'rate_limited' });
    await until(() => zygotes.keepers.length > 0 && zygotes.last().executed.length === 1);
    zygotes.last().finish();
    await first.finished;
    await (await sessions.start({ code: 'print x' })).finished;
  });

  it('are refused by an id that there is none of, and by that of a session that another running server has open', async () => {
    const { sessions, store } = openSessions();
    expect(await errorOf(sessions.use('nothing', () => {}))).toMatchObject({ code: 'unknown_session' });
    const server = { pid: process.ppid, started: findProcess(process.ppid)?.started ?? '' };
    const row = { project: '/', createdAt: 1, usedAt: 1, agent: null, closed: false };
    store.putSession({ ...row, id: 'taken', server });
    store.putSession({ ...row, id: 'free', server: { pid: server.pid, started: 'long ago' } });
    expect(String(await errorOf(sessions.use('taken', () => {})))).toContain('belongs to another server');
    expect(await sessions.use('free', ({ id }) => id)).toBe('free');
  });

  it('are left to wait when the server ends, and the default one is found again by the next server', async () => {
    const root = temporaryFolder();
    const { sessions, zygotes, options } = openSessions({}, root);
    const { session, finished } = await sessions.start({ code: 'print x' });
    await finished;
    await sessions.close();
    expect(zygotes.last()).toMatchObject({ isStopped: false, left: { linger: options.config.linger } });
    const next = createSessions(options);
    const again = await next.start({ code: 'print y' });
    expect(again.session.id).toBe(session.id);
    expect((await again.finished).record).toMatchObject({ number: 2, notes: [] });
  });
});
