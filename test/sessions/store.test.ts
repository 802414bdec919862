import { statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openStore, type SavedInterpreter, type SessionRow, type Store } from '../../src/sessions/store.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { makeRecord } from './make-record.ts';

function open(folder: string): Store {
  const store = openStore(folder);
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

describe('a store', () => {
  it('is in a folder that only its owner can enter', () => {
    const folder = join(temporaryFolder(), 'data');
    open(folder);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    expect(statSync(join(folder, 'cuvette.db')).isFile()).toBe(true);
  });

  it('has everything when it is opened again', () => {
    const folder = join(temporaryFolder(), 'data');
    const first = openStore(folder);
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

describe('sessions in a store', () => {
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

describe('executions in a store', () => {
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

describe('interpreters in a store', () => {
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
