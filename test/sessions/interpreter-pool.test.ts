import { describe, expect, it } from 'vitest';
import type { LabInterpreters } from '../../src/sessions/interpreter-catalog.ts';
import { createInterpreterPool, type InterpreterPool, type PoolOptions } from '../../src/sessions/interpreter-pool.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { fakeSessionOptions, fakeZygotes, PYTHON, temporaryStore } from './fake-keepers.ts';

function openPool(given: Partial<PoolOptions> = {}) {
  const folder = temporaryFolder();
  const zygotes = fakeZygotes();
  const store = given.store ?? temporaryStore(folder);
  const opened: string[] = [];
  const options: PoolOptions = {
    ...fakeSessionOptions(folder, zygotes, store),
    session: 'session-1',
    folder,
    env: { PATH: '/bin' },
    ...given,
  };
  const open = (more: Partial<PoolOptions> = {}): InterpreterPool =>
    createInterpreterPool({ ...options, ...more }, (name) => void opened.push(name));
  return { pool: open(), again: open, zygotes, store, opened, folder };
}

const errorOf = (promise: Promise<unknown>) => promise.then(() => undefined).catch((error: unknown) => error);

describe('opening an interpreter', () => {
  it('starts the builtin Python once, in the project with the variables of the session', async () => {
    const { pool, zygotes, opened, folder } = openPool();
    expect(pool.isOpen('builtin')).toBe(false);
    expect((await pool.open('builtin')).isFresh).toBe(true);
    expect((await pool.open('builtin')).isFresh).toBe(false);
    expect(pool.isOpen('builtin')).toBe(true);
    expect(zygotes.keepers.map(({ spawned }) => spawned)).toMatchObject([
      { cwd: folder, env: { PATH: '/bin', CUVETTE_SESSION: 'session-1' }, startup: null, linger: 60 },
    ]);
    expect(opened).toEqual(['builtin']);
  });

  it('goes on with the one that an earlier server left on its socket', async () => {
    const { pool, again, zygotes } = openPool();
    await pool.open('builtin');
    const next = again();
    expect(next.isOpen('builtin')).toBe(false);
    expect((await next.open('builtin')).isFresh).toBe(false);
    expect(zygotes.keepers).toHaveLength(1);
  });

  it('does not go on with one of another session or of another project', async () => {
    const { pool, again, zygotes } = openPool();
    await pool.open('builtin');
    for (const other of [{ session: 'session-2' }, { project: temporaryFolder() }])
      expect((await again(other).open('builtin')).isFresh).toBe(true);
    const sockets = zygotes.keepers.map(({ spawned }) => spawned.socket);
    expect(new Set(sockets).size).toBe(3);
  });

  it('starts another one after the first was lost', async () => {
    const { pool, zygotes } = openPool();
    await pool.open('builtin');
    zygotes.last().die();
    expect(pool.isOpen('builtin')).toBe(false);
    expect((await pool.open('builtin')).isFresh).toBe(true);
    expect(zygotes.keepers).toHaveLength(2);
  });

  it('that ends as soon as it has started fails, and the next try starts another', async () => {
    const { pool, zygotes } = openPool();
    zygotes.onSpawn = (keeper) => keeper.die();
    expect(await errorOf(pool.open('builtin'))).toMatchObject({ code: 'interpreter_failed' });
    zygotes.onSpawn = () => {};
    expect((await pool.open('builtin')).isFresh).toBe(true);
  });

  it('of a name that there is none of fails with the names that there are', async () => {
    const { pool, store, folder } = openPool();
    const mine = { name: 'mine', python: PYTHON, cwd: null, env: {}, startup: null, description: null, saved: true };
    store.putInterpreter(folder, 'session-1', mine);
    const error = await errorOf(pool.open('yours'));
    expect(error).toMatchObject({ code: 'unknown_interpreter' });
    expect(String(error)).toContain('There are: builtin, bash, node, typescript, go, cpp, mine');
  });
});

describe('attaching to an interpreter', () => {
  it('never starts one', async () => {
    const { pool, zygotes } = openPool();
    expect(await pool.attach('builtin')).toBeUndefined();
    expect(zygotes.keepers).toEqual([]);
  });
});

describe('stopping an interpreter', () => {
  it('ends it, remembers that it was stopped, and lets the next open start it afresh', async () => {
    const { pool, zygotes } = openPool();
    await pool.open('builtin');
    expect(pool.wasStopped('builtin')).toBe(false);
    expect(await pool.stop('builtin', false)).toBe(
      'Interpreter builtin stopped; it starts afresh on the next execute.',
    );
    expect(zygotes.last().isStopped).toBe(true);
    expect(pool.wasStopped('builtin')).toBe(true);
    expect((await pool.open('builtin')).isFresh).toBe(true);
    expect(pool.wasStopped('builtin')).toBe(false);
  });

  it('that does not run says so, and one that is not known is refused', async () => {
    const { pool } = openPool();
    expect(await pool.stop('builtin', false)).toContain('was not running');
    expect(await errorOf(pool.stop('nothing', false))).toMatchObject({ code: 'unknown_interpreter' });
  });

  it('forgets one that was added for this session, and keeps a saved one unless it is to be removed', async () => {
    const { pool, store, folder } = openPool();
    const named = (name: string, saved: boolean) =>
      store.putInterpreter(folder, 'session-1', {
        ...{ name, saved, python: PYTHON, cwd: null, env: {}, startup: null, description: null },
      });
    named('transient', false);
    named('saved', true);
    named('removed', true);
    expect(await pool.stop('transient', false)).toContain('its configuration is removed');
    expect(await pool.stop('saved', false)).not.toContain('removed');
    expect(await pool.stop('removed', true)).toContain('its configuration is removed');
    expect(store.interpreters(folder, 'session-1').map(({ name }) => name)).toEqual(['saved']);
  });

  it('with all others ends each of them', async () => {
    const { pool, zygotes } = openPool({ labInterpreters: undefined });
    await pool.open('builtin');
    await pool.stopAll();
    expect(zygotes.keepers.map(({ isStopped }) => isStopped)).toEqual([true]);
    expect(pool.wasStopped('builtin')).toBe(true);
    expect(await pool.running()).toEqual([]);
  });
});

describe('adding an interpreter', () => {
  it.each(['builtin', 'bash', 'lab:here'])('by the name %s, which is always there, is refused', async (name) => {
    const { pool } = openPool({ labInterpreters: fakeLab().interpreters });
    const given = { name, python: PYTHON, cwd: null, env: {}, startup: null, description: null, saved: false };
    expect(await errorOf(pool.add(given))).toMatchObject({ code: 'interpreter_exists' });
  });

  it('that starts in a folder that does not exist is refused', async () => {
    const { pool } = openPool();
    const given = {
      name: 'mine',
      python: PYTHON,
      cwd: 'nowhere',
      env: {},
      startup: null,
      description: null,
      saved: false,
    };
    expect(await errorOf(pool.add(given))).toMatchObject({ code: 'invalid_input' });
  });
});

describe('an interpreter of a lab', () => {
  it('is opened by its lab, is not taken for a fresh one, and is only let go of when it is stopped', async () => {
    const lab = fakeLab();
    const { pool, zygotes } = openPool({ labInterpreters: lab.interpreters });
    expect(await pool.attach('lab:here')).toBeUndefined();
    expect(await pool.open('lab:here')).toMatchObject({ isFresh: false });
    expect(lab.opened).toEqual(['lab:here']);
    expect(await pool.stop('lab:here', false)).toContain('its lab goes on');
    expect(zygotes.keepers).toEqual([]);
  });

  it('is listed beside the builtin one, with what it is', async () => {
    const { pool } = openPool({ labInterpreters: fakeLab().interpreters });
    const listed = await pool.list();
    expect(listed[0]).toMatchObject({ name: 'builtin', source: 'builtin', state: 'stopped', python: PYTHON });
    expect(listed.at(-1)).toMatchObject({ name: 'lab:here', source: 'lab', description: 'a model', python: null });
  });
});

function fakeLab() {
  const opened: string[] = [];
  const zygotes = fakeZygotes();
  const interpreters: LabInterpreters = {
    isName: (name) => name.startsWith('lab:'),
    async open(name) {
      opened.push(name);
      await zygotes.spawn(
        { python: PYTHON, preload: [] },
        { socket: name, cwd: '/', env: {}, linger: 0, startup: null },
      );
      const live = await zygotes.connect(name);
      if (!live) throw new Error('it is gone');
      return live;
    },
    list: async () => [{ name: 'lab:here', description: 'a model' }],
  };
  return { opened, interpreters };
}
