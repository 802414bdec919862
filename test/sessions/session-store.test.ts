import { mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'libsql';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  openSessionStore,
  type SavedInterpreter,
  type SessionRow,
  type SessionStore,
} from '../../src/sessions/session-store.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { makeRecord } from './make-record.ts';

function open(folder: string): SessionStore {
  const store = openSessionStore(folder);
  onTestFinished(() => {
    try {
      store.close();
    } catch {}
  });
  return store;
}

const newStore = () => open(join(temporaryFolder(), 'data'));

function session(different: Partial<SessionRow> = {}): SessionRow {
  return {
    id: 'one',
    project: '/project',
    createdAt: 1,
    usedAt: 2,
    agent: { pid: 10, started: '100' },
    server: { pid: 11, started: '101' },
    closed: false,
    ...different,
  };
}

function interpreter(different: Partial<SavedInterpreter> = {}): SavedInterpreter {
  return {
    name: 'mine',
    python: '/p/python',
    cwd: null,
    env: {},
    startup: null,
    description: null,
    saved: true,
    ...different,
  };
}

describe('a page of the history', () => {
  it('has the last executions before a number, and of what is large its sizes alone', () => {
    const store = newStore();
    const png = 'A'.repeat(1 << 20);
    const figure = { type: 'display' as const, data: { 'image/png': png, 'text/plain': 'f' }, metadata: { w: 1 } };
    const text = { type: 'stream' as const, name: 'stdout' as const, text: '\u0001'.repeat(64_000) };
    for (const number of [1, 2, 3]) store.putExecution(makeRecord({ number, outputs: [figure, text] }), 0);
    const page = store.page('session-1', 3, 1);
    expect(page.map(({ number }) => number)).toEqual([2]);
    expect(page[0]?.outputs).toEqual([
      { type: 'display', displayId: null, metadata: { w: 1 }, sizes: { 'image/png': 1 << 20, 'text/plain': 1 } },
      text,
    ]);
    expect(store.page('session-1', 99, 10).map(({ number }) => number)).toEqual([1, 2, 3]);
  });

  it('tells no origin of executions that an earlier version has recorded', () => {
    const store = newStore();
    const { origin, ...old } = makeRecord();
    store.putExecution(old as ReturnType<typeof makeRecord>, 0);
    expect(origin).toBe('agent');
    expect(store.execution('session-1', 1)?.origin).toBeNull();
    expect(store.page('session-1', 9, 9)[0]?.origin).toBeNull();
  });
});

describe('a session store', () => {
  it('is in a folder that only its owner can enter', () => {
    const folder = join(temporaryFolder(), 'data');
    open(folder);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    expect(statSync(join(folder, 'cuvette.db')).isFile()).toBe(true);
  });

  it('keeps the beginning of very long code, and says how much more there was', () => {
    const store = newStore();
    store.putExecution(makeRecord({ session: 'one', code: 'x'.repeat(1_000_000) }), 0);
    const { code } = store.execution('one', 1) ?? makeRecord();
    expect(code).toHaveLength(250_000 + '\n[750000 more characters of code were not kept]\n'.length);
    expect(code).toContain('[750000 more characters of code were not kept]');
  });

  it('has everything when it is opened again', () => {
    const folder = join(temporaryFolder(), 'data');
    const first = openSessionStore(folder);
    first.putSession(session());
    first.putExecution(makeRecord({ session: 'one', code: 'print("żółw 🐢")' }), 17);
    first.putInterpreter('/project', 'one', interpreter());
    first.close();

    const second = open(folder);
    expect(second.session('one')).toEqual(session());
    expect(second.execution('one', 1)).toEqual(makeRecord({ session: 'one', code: 'print("żółw 🐢")' }));
    expect(second.acknowledged('one', 1)).toBe(17);
    expect(second.interpreters('/project', 'one')).toEqual([interpreter()]);
  });

  it('has what was written as soon as it is written, closed or not', () => {
    const folder = join(temporaryFolder(), 'data');
    open(folder).putExecution(makeRecord(), 1);
    expect(open(folder).execution('session-1', 1)).toEqual(makeRecord());
  });

  it('shows each of two servers what the other writes', () => {
    const folder = join(temporaryFolder(), 'data');
    const [one, two] = [open(folder), open(folder)];
    for (let number = 1; number <= 50; number++) {
      (number % 2 ? one : two).putExecution(makeRecord({ number }), number);
      expect((number % 2 ? two : one).lastNumber('session-1')).toBe(number);
    }
    expect(one.executions('session-1')).toEqual(two.executions('session-1'));
    expect(one.executions('session-1')).toHaveLength(50);
  });
});

describe('sessions in the session store', () => {
  it('are found by id and by project, the one used last first', () => {
    const store = newStore();
    store.putSession(session({ id: 'old', usedAt: 1 }));
    store.putSession(session({ id: 'new', usedAt: 3 }));
    store.putSession(session({ id: 'other', project: '/other', usedAt: 4 }));
    expect(store.sessionsOf('/project').map(({ id }) => id)).toEqual(['new', 'old']);
    expect(store.session('other')?.project).toBe('/other');
    expect(store.session('none')).toBeUndefined();
  });

  it('are replaced, not added twice', () => {
    const store = newStore();
    store.putSession(session());
    store.putSession(session({ closed: true, usedAt: 9 }));
    expect(store.sessionsOf('/project')).toEqual([session({ closed: true, usedAt: 9 })]);
  });
});

describe('executions in the session store', () => {
  it('come in the order of their numbers', () => {
    const store = newStore();
    for (const number of [10, 2, 1]) store.putExecution(makeRecord({ number }), 0);
    expect(store.executions('session-1').map(({ number }) => number)).toEqual([1, 2, 10]);
    expect(store.lastNumber('session-1')).toBe(10);
  });

  it('belong to their session', () => {
    const store = newStore();
    store.putExecution(makeRecord({ session: 'a' }), 0);
    expect(store.execution('b', 1)).toBeUndefined();
    expect(store.executions('b')).toEqual([]);
    expect(store.lastNumber('b')).toBe(0);
    expect(store.acknowledged('b', 1)).toBe(0);
  });

  it('are brought up to date together with what is acknowledged', () => {
    const store = newStore();
    store.putExecution(makeRecord({ state: 'running', outcome: null }), 3);
    store.putExecution(makeRecord(), 8);
    expect(store.execution('session-1', 1)?.state).toBe('done');
    expect(store.acknowledged('session-1', 1)).toBe(8);
    expect(store.executions('session-1')).toHaveLength(1);
  });
});

describe('outputs in the session store', () => {
  const stream = (text: string) => ({ type: 'stream' as const, name: 'stdout' as const, text });

  const LARGE = stream('x'.repeat(10_000));
  const running = (...outputs: ReturnType<typeof stream>[]) => makeRecord({ state: 'running', outputs });

  it('that are large are written only where they have changed', () => {
    const store = newStore();
    store.putExecution(running(LARGE, stream('b')), 1);
    store.putExecution(running(stream('not written'), stream('c'), stream('d')), 2, [1, 2]);
    expect(store.execution('session-1', 1)?.outputs).toEqual([LARGE, stream('c'), stream('d')]);
  });

  it('that were small and grow are all there, in this server and in the next', () => {
    const folder = join(temporaryFolder(), 'data');
    const first = open(folder);
    first.putExecution(running(stream('a')), 1);
    first.putExecution(running(stream('a'), LARGE), 2, [1]);
    expect(first.execution('session-1', 1)?.outputs).toEqual([stream('a'), LARGE]);
    const next = open(folder);
    expect(next.execution('session-1', 1)?.outputs).toEqual([stream('a'), LARGE]);
    next.putExecution(running(stream('a'), LARGE, stream('c')), 3, [2]);
    next.putExecution(makeRecord({ outputs: [stream('a'), LARGE, stream('c'), stream('d')] }), 4, [3]);
    expect(first.execution('session-1', 1)?.outputs).toEqual([stream('a'), LARGE, stream('c'), stream('d')]);
  });

  it('that come after the end are there too', () => {
    const store = newStore();
    store.putExecution(makeRecord({ outputs: [LARGE] }), 1);
    store.putExecution(makeRecord({ outputs: [LARGE, stream('late')] }), 2, [1]);
    expect(store.execution('session-1', 1)?.outputs).toEqual([LARGE, stream('late')]);
  });

  it('come in their order, also beyond ten', () => {
    const store = newStore();
    const outputs = Array.from({ length: 25 }, (_, index) => stream(String(index)));
    store.putExecution(makeRecord({ outputs }), 1);
    expect(store.execution('session-1', 1)?.outputs).toEqual(outputs);
    expect(store.executions('session-1')[0]?.outputs).toEqual(outputs);
  });
});

describe('the session store tells a session that is opened', () => {
  it('which executions have not ended', () => {
    const store = newStore();
    store.putExecution(makeRecord({ number: 1 }), 0);
    store.putExecution(makeRecord({ number: 2, state: 'running', outcome: null }), 0);
    store.putExecution(makeRecord({ number: 3, state: 'queued', outcome: null }), 0);
    expect(store.unfinished('session-1').map(({ number }) => number)).toEqual([2, 3]);
  });

  it('which interpreters hold variables, and since when', () => {
    const store = newStore();
    store.putExecution(makeRecord({ number: 1, interpreter: 'builtin' }), 0);
    store.putExecution(makeRecord({ number: 2, interpreter: 'builtin' }), 0);
    store.putExecution(makeRecord({ number: 3, interpreter: 'builtin', variablesSurvived: false }), 0);
    store.putExecution(makeRecord({ number: 4, interpreter: 'mine', state: 'queued' }), 0);
    const reason = { code: 'not-started' as const, message: 'no' };
    store.putExecution(makeRecord({ number: 5, interpreter: 'yours', reason }), 0);
    expect(store.lastWithVariables('session-1')).toEqual(new Map([['builtin', 2]]));
  });
});

describe('a session that is removed from the session store', () => {
  it('leaves nothing of itself: neither history nor outputs nor names nor interpreters with their environment', () => {
    const folder = join(temporaryFolder(), 'data');
    const store = open(folder);
    store.putSession(session());
    store.putExecution(makeRecord({ session: 'one' }), 0);
    store.putAlias('ann', 'work', 'one');
    store.putInterpreter('/project', 'one', interpreter({ saved: false, env: { TOKEN: 'secret' } }));
    store.putInterpreter('/project', 'one', interpreter({ name: 'kept' }));
    store.removeSession('one');
    expect(store.session('one')).toBeUndefined();
    expect(store.executions('one')).toEqual([]);
    expect(store.alias('ann', 'work')).toBeUndefined();
    expect(store.interpreters('/project', 'one')).toEqual([interpreter({ name: 'kept' })]);
    const db = new Database(join(folder, 'cuvette.db'));
    for (const table of ['sessions', 'executions', 'outputs', 'aliases'])
      expect(db.prepare(`SELECT count(*) AS n FROM ${table}`).get(), table).toMatchObject({ n: 0 });
    db.close();
  });
});

describe('a session store of another version', () => {
  /** As Cuvette wrote it before its schema had a version. */
  function writeFirstSchema(folder: string): void {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const db = new Database(join(folder, 'cuvette.db'));
    db.exec(`
      CREATE TABLE sessions (id TEXT PRIMARY KEY, project TEXT NOT NULL, used_at INTEGER NOT NULL, body TEXT NOT NULL);
      CREATE TABLE executions (session TEXT NOT NULL, number INTEGER NOT NULL, acknowledged INTEGER NOT NULL, body TEXT NOT NULL,
        PRIMARY KEY (session, number));
      CREATE TABLE interpreters (project TEXT NOT NULL, session TEXT NOT NULL, name TEXT NOT NULL, body TEXT NOT NULL,
        PRIMARY KEY (project, session, name));`);
    db.prepare('INSERT INTO sessions VALUES (?, ?, ?, ?)').run('one', '/project', 2, JSON.stringify(session()));
    const put = db.prepare('INSERT INTO executions VALUES (?, ?, ?, ?)');
    for (const record of OLD) put.run(record.session, record.number, 7, JSON.stringify(record));
    db.close();
  }

  const OLD = [
    makeRecord({ session: 'one', number: 1, code: 'print("żółw 🐢")' }),
    makeRecord({ session: 'one', number: 2, outputs: [], variablesSurvived: false, interpreter: 'mine' }),
    makeRecord({ session: 'one', number: 3, state: 'running', outcome: null }),
  ];

  it('that is older is brought up to date, with all that it held', () => {
    const folder = join(temporaryFolder(), 'data');
    writeFirstSchema(folder);
    const store = open(folder);
    expect(store.session('one')).toEqual(session());
    expect(store.executions('one')).toEqual(OLD);
    expect(store.acknowledged('one', 1)).toBe(7);
    expect(store.unfinished('one').map(({ number }) => number)).toEqual([3]);
    expect(store.lastWithVariables('one')).toEqual(new Map([['builtin', 3]]));
    expect(open(folder).executions('one')).toEqual(OLD);
  });

  it('that is newer is refused with what to do, and stays as it is', () => {
    const folder = join(temporaryFolder(), 'data');
    openSessionStore(folder).close();
    const db = new Database(join(folder, 'cuvette.db'));
    db.exec('PRAGMA user_version = 99');
    db.close();
    expect(() => openSessionStore(folder)).toThrow(/newer Cuvette.*version 99/);
    const again = new Database(join(folder, 'cuvette.db'));
    expect(again.prepare('PRAGMA user_version').get()).toMatchObject({ user_version: 99 });
    again.close();
  });
});

describe('interpreters in the session store', () => {
  it('that are saved belong to the project, the others to their session', () => {
    const store = newStore();
    store.putInterpreter('/project', 'one', interpreter({ name: 'saved' }));
    store.putInterpreter('/project', 'one', interpreter({ name: 'transient', saved: false }));
    const names = (project: string, id: string) => store.interpreters(project, id).map(({ name }) => name);
    expect(names('/project', 'one')).toEqual(['saved', 'transient']);
    expect(names('/project', 'two')).toEqual(['saved']);
    expect(names('/other', 'one')).toEqual([]);
  });

  it('are replaced by one of the same name, saved or not', () => {
    const store = newStore();
    store.putInterpreter('/project', 'one', interpreter({ saved: false }));
    store.putInterpreter('/project', 'one', interpreter({ python: '/q/python' }));
    expect(store.interpreters('/project', 'one')).toEqual([interpreter({ python: '/q/python' })]);
  });

  it('are gone once removed', () => {
    const store = newStore();
    store.putInterpreter('/project', 'one', interpreter());
    store.removeInterpreter('/project', 'two', 'mine');
    expect(store.interpreters('/project', 'one')).toEqual([]);
  });
});
