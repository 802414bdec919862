import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { createSession, type Session, type SessionLimits } from '../../src/sessions/session.ts';
import type { SessionStore } from '../../src/sessions/session-store.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import {
  type FakeKeeper,
  type FakeZygotes,
  fakeSessionOptions,
  fakeZygotes,
  LIMITS,
  runAtOnce,
  temporaryStore,
  until,
} from './fake-keepers.ts';

const ID = 'session-one-aaaaaaaaa';

interface Server {
  session: Session;
  zygotes: FakeZygotes;
  store: SessionStore;
  folder: string;
}

/** A session as a server opens it; as the next server does, if it is given an earlier one. */
function openSession(earlier?: Partial<Server> & { limits?: Partial<SessionLimits> }): Server {
  const folder = earlier?.folder ?? temporaryFolder();
  const store = earlier?.store ?? temporaryStore(folder);
  const zygotes = earlier?.zygotes ?? fakeZygotes();
  const session = createSession({
    ...fakeSessionOptions(folder, zygotes, store),
    id: ID,
    folder: join(folder, 'session'),
    env: {},
    limits: { ...LIMITS, ...earlier?.limits },
  });
  return { session, zygotes, store, folder };
}

/** One whose code ends at once, but for what begins with `wait`. */
function openReadySession(): Server {
  const server = openSession();
  server.zygotes.onSpawn = runAtOnce;
  return server;
}

function fakeTimers(): void {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
}

describe('the queue of a session', () => {
  it('runs executions one at a time, in the order in which they came', async () => {
    const { session, zygotes } = openReadySession();
    const first = session.execute({ code: 'wait first' });
    const others = ['print second', 'print third'].map((code) => session.execute({ code }));
    await until(() => zygotes.keepers.length > 0 && zygotes.last().executed.length > 0);
    expect(first.record.state).toBe('running');
    expect(others.map(({ record }) => record.state)).toEqual(['queued', 'queued']);
    expect(zygotes.last().executed.map(({ code }) => code)).toEqual(['wait first']);
    zygotes.last().finish();
    await Promise.all(others.map(({ done }) => done));
    expect(zygotes.last().executed.map(({ code }) => code)).toEqual(['wait first', 'print second', 'print third']);
    expect(session.history().map(({ number, text }) => [number, text])).toEqual([
      [1, ''],
      [2, 'second\n'],
      [3, 'third\n'],
    ]);
  });

  it('goes on after an execution whose surroundings failed, and records that it did not start', async () => {
    const { session } = openReadySession();
    const failed = session.execute({ code: 'print 1', around: () => Promise.reject(new Error('no room for files')) });
    const next = session.execute({ code: 'print 2' });
    expect(await failed.done).toMatchObject({
      outcome: 'error',
      reason: { code: 'not-started', message: 'no room for files' },
    });
    expect(await next.done).toMatchObject({ outcome: 'ok', text: '2\n' });
  });

  it('runs what surrounds an execution between the executions before and after it', async () => {
    const { session, zygotes } = openReadySession();
    const log: string[] = [];
    const around = (name: string) => async (run: () => Promise<void>) => {
      log.push(`${name} begins after ${zygotes.keepers[0]?.executed.length ?? 0}`);
      await run();
      await new Promise((resolve) => setImmediate(resolve));
      log.push(`${name} ends after ${zygotes.last().executed.length}`);
    };
    const calls = ['a', 'b'].map((name) => session.execute({ code: `print ${name}`, around: around(name) }));
    await Promise.all(calls.map(({ done }) => done));
    await until(() => log.length === 4);
    expect(log).toEqual(['a begins after 0', 'a ends after 1', 'b begins after 1', 'b ends after 2']);
  });

  it('answers a question for variables only after the executions that came before it', async () => {
    const { session, zygotes } = openReadySession();
    session.execute({ code: 'wait' });
    let isAnswered = false;
    const asked = session.variables('builtin').then((variables) => {
      isAnswered = true;
      return variables;
    });
    await until(() => zygotes.keepers.length > 0 && zygotes.last().executed.length > 0);
    expect(isAnswered).toBe(false);
    zygotes.last().variables = [{ name: 'x', type: 'int' }];
    zygotes.last().finish();
    expect(await asked).toEqual([{ name: 'x', type: 'int' }]);
  });
});

describe('an execution of a session', () => {
  it('gets the timeout and the output limit of its session, its own timeout if it has one, and none for 0', async () => {
    const { session, zygotes } = openReadySession();
    for (const timeout of [undefined, 7, 0]) await session.execute({ code: 'print x', timeout }).done;
    expect(zygotes.last().executed.map(({ timeout, limit }) => [timeout, limit])).toEqual([
      [300, 100_000],
      [7, 100_000],
      [null, 100_000],
    ]);
  });

  it('has the number after the last one of an earlier server, and is found by it', async () => {
    const first = openReadySession();
    await first.session.execute({ code: 'print one' }).done;
    const { session } = openSession(first);
    const execution = session.execute({ code: 'print two' });
    await execution.done;
    expect(execution.record.number).toBe(2);
    expect(session.execution(1).record.text).toBe('one\n');
    expect(() => session.execution(3)).toThrow(`Session ${ID} has no execution 3; its last one is 2.`);
  });

  it('is told by its outcome, reason and exit code how it ended', async () => {
    const { session, zygotes } = openSession();
    zygotes.onSpawn = (keeper) => {
      keeper.onExecute = () => keeper.finish({ status: 'error', errorName: 'ValueError', wall: 2, cpu: 1, peak: 77 });
    };
    expect(await session.execute({ code: 'raise' }).done).toMatchObject({
      outcome: 'error',
      reason: { code: 'exception', message: 'The code raised ValueError.' },
      exitCode: 1,
      wall: 2,
      cpu: 1,
      peak: 77,
    });
  });

  it('that is announced is in the store before it runs', () => {
    const { session, store } = openSession();
    session.execute({ code: 'print x', isAnnounced: true });
    expect(store.execution(ID, 1)).toMatchObject({ state: 'queued', code: 'print x' });
  });

  it('gets what its threads print after it has ended', async () => {
    const { session, zygotes, store } = openReadySession();
    fakeTimers();
    const execution = session.execute({ code: 'print x' });
    await execution.done;
    zygotes.last().print('late\n', '1');
    vi.advanceTimersByTime(1000);
    await until(() => store.execution(ID, 1)?.text === 'x\nlate\n');
    expect(store.execution(ID, 1)?.state).toBe('done');
  });
});

describe('cancelling', () => {
  it('an execution that waits, by its signal, keeps it from running', async () => {
    const { session, zygotes } = openReadySession();
    const abort = new AbortController();
    session.execute({ code: 'wait' });
    const waiting = session.execute({ code: 'print never', signal: abort.signal });
    const last = session.execute({ code: 'print last' });
    abort.abort();
    await until(() => zygotes.keepers.length > 0 && zygotes.last().executed.length > 0);
    zygotes.last().finish();
    expect(await waiting.done).toMatchObject({ outcome: 'cancelled', reason: { code: 'not-started' }, exitCode: 130 });
    expect(await last.done).toMatchObject({ outcome: 'ok' });
    expect(zygotes.last().executed.map(({ code }) => code)).toEqual(['wait', 'print last']);
  });

  it('an execution that waits, by its number, ends it at once', async () => {
    const { session, zygotes } = openReadySession();
    session.execute({ code: 'wait' });
    const waiting = session.execute({ code: 'print never' });
    session.interrupt(2);
    expect(await waiting.done).toMatchObject({ outcome: 'cancelled', reason: { code: 'not-started' } });
    await until(() => zygotes.keepers.length > 0 && zygotes.last().executed.length > 0);
    zygotes.last().finish();
    await session.execute({ code: 'print last' }).done;
    expect(zygotes.last().executed.map(({ code }) => code)).toEqual(['wait', 'print last']);
  });

  it('an execution that runs, by its signal or by its number, interrupts its interpreter and lets the next one run', async () => {
    const { session, zygotes } = openReadySession();
    const abort = new AbortController();
    const first = session.execute({ code: 'wait', signal: abort.signal });
    await until(() => zygotes.keepers.length > 0 && zygotes.last().executed.length === 1);
    abort.abort();
    expect(await first.done).toMatchObject({
      outcome: 'cancelled',
      reason: { code: 'cancelled' },
      variablesSurvived: true,
    });
    const second = session.execute({ code: 'wait' });
    await until(() => zygotes.last().executed.length === 2);
    session.interrupt(2);
    expect(await second.done).toMatchObject({ outcome: 'cancelled' });
    expect(zygotes.last().interrupted).toEqual(['1', '2']);
    expect(await session.execute({ code: 'print on' }).done).toMatchObject({ outcome: 'ok', text: 'on\n' });
  });

  it('an execution while its interpreter is starting keeps it from being sent', async () => {
    const { session, zygotes } = openSession();
    let start = () => {};
    zygotes.onSpawn = (keeper) => {
      runAtOnce(keeper);
      return new Promise((resolve) => {
        start = resolve;
      });
    };
    const abort = new AbortController();
    const execution = session.execute({ code: 'print never', signal: abort.signal });
    await until(() => zygotes.keepers.length > 0);
    abort.abort();
    start();
    expect(await execution.done).toMatchObject({ outcome: 'cancelled', reason: { code: 'not-started' } });
    expect(zygotes.last().executed).toEqual([]);
  });

  it('all of an interpreter by a reset ends what runs in it, and says how many names it held', async () => {
    const { session, zygotes } = openReadySession();
    const running = session.execute({ code: 'wait' });
    await until(() => zygotes.keepers.length > 0 && zygotes.last().executed.length === 1);
    zygotes.last().variables = [
      { name: 'x', type: 'int' },
      { name: 'y', type: 'int' },
    ];
    expect(await session.reset('builtin')).toBe(2);
    expect(await running.done).toMatchObject({ outcome: 'cancelled' });
    expect(zygotes.last().variables).toEqual([]);
  });
});

describe('an interpreter that dies', () => {
  it('while code runs ends the execution as lost, and the next one is told of its fresh interpreter', async () => {
    const { session, zygotes } = openReadySession();
    await session.execute({ code: 'print x' }).done;
    const doomed = session.execute({ code: 'wait' });
    await until(() => zygotes.last().executed.length === 2);
    zygotes.last().die();
    expect(await doomed.done).toMatchObject({
      outcome: 'died',
      reason: { code: 'interpreter-lost' },
      variablesSurvived: false,
    });
    await session.execute({ code: 'print y' }).done;
    expect(zygotes.keepers).toHaveLength(2);
  });

  it('with variables of earlier calls in it makes the next execution say that they are lost', async () => {
    const { session, zygotes } = openReadySession();
    await session.execute({ code: 'print x' }).done;
    zygotes.last().die();
    const next = await session.execute({ code: 'print y' }).done;
    expect(next.notes).toEqual([
      'a fresh interpreter: the one that earlier calls used has ended, and their variables are lost',
    ]);
    expect((await session.execute({ code: 'print z' }).done).notes).toEqual([]);
  });

  it('of itself between two calls makes the next execution say how', async () => {
    const { session, zygotes } = openReadySession();
    await session.execute({ code: 'print x' }).done;
    zygotes.last().dieIdle('SIGKILL');
    const { notes } = await session.execute({ code: 'print y' }).done;
    expect(notes).toEqual(['the interpreter had died between calls (SIGKILL); variables of earlier calls are lost']);
  });

  it('before it could start fails only the execution that needed it', async () => {
    const { session, zygotes } = openSession();
    zygotes.onSpawn = (keeper) => keeper.die();
    const failed = await session.execute({ code: 'print x' }).done;
    expect(failed).toMatchObject({ outcome: 'error', reason: { code: 'not-started' }, exitCode: 70 });
    expect(failed.reason?.message).toContain('ended as soon as it had started');
    zygotes.onSpawn = runAtOnce;
    expect(await session.execute({ code: 'print y' }).done).toMatchObject({ outcome: 'ok' });
  });
});

describe('acknowledging events', () => {
  it('happens only when the store has what they said', async () => {
    const { session, zygotes, store } = openReadySession();
    fakeTimers();
    const onDisk: [number, string, number][] = [];
    session.execute({ code: 'wait' });
    await until(() => zygotes.keepers.length > 0 && zygotes.last().executed.length === 1);
    const keeper = zygotes.last();
    keeper.onAcknowledge = (seq) =>
      void onDisk.push([seq, store.execution(ID, 1)?.text ?? '', store.acknowledged(ID, 1)]);
    keeper.print('a');
    keeper.print('b');
    expect(keeper.acknowledged).toEqual([]);
    vi.advanceTimersByTime(1000);
    await until(() => keeper.acknowledged.length === 1);
    keeper.print('c');
    keeper.finish();
    await until(() => keeper.acknowledged.length === 2);
    expect(onDisk).toEqual([
      [2, 'ab', 2],
      [4, 'abc', 4],
    ]);
  });

  it('happens only when the file of a long output has all of it', async () => {
    const { session, zygotes, store } = openSession({ limits: { outputLimit: 10 } });
    zygotes.onSpawn = runAtOnce;
    const inFile: string[] = [];
    session.execute({ code: 'wait' });
    await until(() => zygotes.keepers.length > 0 && zygotes.last().executed.length === 1);
    const keeper = zygotes.last();
    keeper.onAcknowledge = () => {
      const file = store.execution(ID, 1)?.outputFile ?? '';
      inFile.push(existsSync(file) ? readFileSync(file, 'utf8') : 'no file');
    };
    keeper.print('x'.repeat(40_000));
    await until(() => keeper.acknowledged.length === 1);
    keeper.print('the end');
    keeper.finish();
    await until(() => keeper.acknowledged.length === 2);
    expect(inFile).toEqual(['x'.repeat(40_000), `${'x'.repeat(40_000)}the end`]);
  });

  it('waits for much output that is not written yet for no timer', async () => {
    const { session, zygotes } = openReadySession();
    fakeTimers();
    session.execute({ code: 'wait' });
    await until(() => zygotes.keepers.length > 0 && zygotes.last().executed.length === 1);
    zygotes.last().print('x'.repeat(40_000));
    await until(() => zygotes.last().acknowledged.length === 1);
    zygotes.last().finish();
  });

  it('does not happen while the store cannot be written, and is made up for by itself once it can', async () => {
    const { session, zygotes, store } = openReadySession();
    fakeTimers();
    session.execute({ code: 'wait' });
    await until(() => zygotes.keepers.length > 0 && zygotes.last().executed.length === 1);
    const keeper = zygotes.last();
    const put = store.putExecution;
    let tries = 0;
    store.putExecution = () => {
      tries += 1;
      throw new Error('database or disk is full');
    };
    keeper.print('kept');
    vi.advanceTimersByTime(300);
    await until(() => tries === 1);
    expect(keeper.acknowledged).toEqual([]);
    store.putExecution = put;
    await new Promise((resolve) => setImmediate(resolve));
    vi.advanceTimersByTime(1000);
    await until(() => keeper.acknowledged.length === 1);
    expect(store.execution(ID, 1)?.text).toBe('kept');
    keeper.finish();
  });

  it('waits for a listener that has no room, and the end of the execution does not', async () => {
    const { session, zygotes, store } = openReadySession();
    fakeTimers();
    const execution = session.execute({ code: 'wait' });
    let makeRoom = () => {};
    execution.onOutput(
      () =>
        new Promise((resolve) => {
          makeRoom = resolve;
        }),
    );
    await until(() => zygotes.keepers.length > 0 && zygotes.last().executed.length === 1);
    const keeper = zygotes.last();
    keeper.print('first');
    vi.advanceTimersByTime(300);
    await until(() => store.execution(ID, 1)?.text === 'first');
    expect(keeper.acknowledged).toEqual([]);
    makeRoom();
    await until(() => keeper.acknowledged.length === 1);
    keeper.print('second');
    keeper.finish();
    expect(await execution.done).toMatchObject({ outcome: 'ok', text: 'firstsecond' });
  });
});

describe('what a dead server left', () => {
  /** Starts code that prints this and goes on, and waits until what it printed is recorded. */
  async function runUntilRecorded({ session, zygotes }: Server, printed: string): Promise<FakeKeeper> {
    fakeTimers();
    session.execute({ code: 'wait' });
    await until(() => zygotes.keepers.length > 0 && zygotes.last().executed.length === 1);
    const keeper = zygotes.last();
    keeper.print(printed);
    vi.advanceTimersByTime(300);
    await until(() => keeper.acknowledged.length === 1);
    return keeper;
  }

  it('goes on in the next one: code that runs is followed to its end, and no output is lost or doubled', async () => {
    const first = openReadySession();
    const keeper = await runUntilRecorded(first, 'one\n');
    keeper.print('two\n'); // Not written: the server is killed now.
    const { session } = openSession(first);
    const execution = session.execution(1);
    await until(() => session.pending().length === 1);
    keeper.print('three\n');
    keeper.finish();
    expect(await session.pending()[0]?.done).toMatchObject({ outcome: 'ok', text: 'one\ntwo\nthree\n' });
    expect(execution.record.number).toBe(1);
    expect(first.zygotes.keepers).toHaveLength(1);
    expect((await session.execute({ code: 'print next' }).done).notes).toEqual([]);
  });

  it('and had recorded before its acknowledgement arrived is not recorded again', async () => {
    const first = openReadySession();
    first.zygotes.onSpawn = (keeper) => {
      runAtOnce(keeper);
      keeper.losesAcknowledgements = true;
    };
    const keeper = await runUntilRecorded(first, 'once\n');
    const { session } = openSession(first);
    await until(() => session.pending().length === 1);
    const [resumed] = session.pending();
    keeper.finish();
    expect(await resumed?.done).toMatchObject({ outcome: 'ok', text: 'once\n' });
  });

  it('in a file is cut to what was recorded, so that no output stands there twice', async () => {
    const first = openSession({ limits: { outputLimit: 10 } });
    first.zygotes.onSpawn = runAtOnce;
    const keeper = await runUntilRecorded(first, '0123456789abcdef\n');
    keeper.print('more\n');
    await first.session.execution(1).transcript.flush(); // In the file, and not in the record.
    const { session } = openSession({ ...first, limits: { outputLimit: 10 } });
    await until(() => session.pending().length === 1);
    const [resumed] = session.pending();
    keeper.finish();
    const record = await resumed?.done;
    expect(readFileSync(record?.outputFile ?? '', 'utf8')).toBe('0123456789abcdef\nmore\n');
    expect(record?.textLength).toBe(22);
  });

  it('is recorded as lost if its interpreter is gone, and as not run if it was still waiting', async () => {
    const first = openReadySession();
    first.session.execute({ code: 'wait' });
    const waiting = first.session.execute({ code: 'print never' });
    await until(() => first.zygotes.keepers.length > 0 && first.zygotes.last().executed.length === 1);
    expect(waiting.record.state).toBe('queued');
    const { session, store } = openSession({ ...first, zygotes: fakeZygotes() });
    await session.variables('builtin'); // Comes after the recovery.
    expect(store.execution(ID, 1)).toMatchObject({ outcome: 'died', reason: { code: 'interpreter-lost' } });
    expect(store.execution(ID, 2)).toMatchObject({ outcome: 'cancelled', reason: { code: 'not-started' } });
  });
});

describe('ending a session', () => {
  it('while code runs stops its interpreter, ends that code as cancelled, and runs nothing that waits', async () => {
    const { session, zygotes } = openReadySession();
    const running = session.execute({ code: 'wait' });
    const waiting = session.execute({ code: 'print never' });
    await until(() => zygotes.keepers.length > 0 && zygotes.last().executed.length === 1);
    await session.stop();
    expect(zygotes.last().isStopped).toBe(true);
    expect(await running.done).toMatchObject({ outcome: 'cancelled', reason: { code: 'cancelled' } });
    expect(await waiting.done).toMatchObject({ outcome: 'cancelled', reason: { code: 'not-started' } });
    expect(zygotes.keepers).toHaveLength(1);
    expect(session.pending()).toEqual([]);
  });

  it('by leaving keeps its interpreters for the next server, which goes on with their variables', async () => {
    const first = openReadySession();
    await first.session.execute({ code: 'print x' }).done;
    await first.session.leave(5, null);
    expect(first.zygotes.last()).toMatchObject({ left: { linger: 5 }, isStopped: false });
    const { session } = openSession(first);
    expect((await session.execute({ code: 'print y' }).done).notes).toEqual([]);
    expect(first.zygotes.keepers).toHaveLength(1);
  });
});

describe('a look at a value', () => {
  const patient = { wait: 60 };

  it('is answered by the interpreter that runs, and leaves no trace in the history', async () => {
    const { session, zygotes } = openReadySession();
    await session.execute({ code: 'print x' }).done;
    zygotes.last().variables = [{ name: 'x', type: 'int' }];
    expect(await session.look('builtin', { path: 'x', limit: 3 }, patient)).toMatchObject({ kind: 'text', text: 'x' });
    expect(await session.runningVariables('builtin', patient)).toEqual([{ name: 'x', type: 'int' }]);
    expect(await session.complete('builtin', 'x.', 2, patient)).toEqual({ matches: ['completed'], start: 0, end: 2 });
    expect(zygotes.last().looked).toEqual([{ path: 'x', limit: 3 }]);
    expect(session.history().map(({ code }) => code)).toEqual(['print x']);
    expect(session.size).toBe(1);
  });

  it('starts no interpreter', async () => {
    const { session, zygotes } = openReadySession();
    expect(await session.runningVariables('builtin', patient)).toEqual([]);
    await expect(session.look('builtin', { path: 'x' }, patient)).rejects.toMatchObject({ code: 'unknown_variable' });
    expect(await session.complete('builtin', 'x', 1, patient)).toEqual({ matches: [], start: 1, end: 1 });
    expect(zygotes.keepers).toEqual([]);
  });

  it('is refused while code runs, with the number of the execution', async () => {
    const { session, zygotes } = openReadySession();
    session.execute({ code: 'wait' });
    await until(() => zygotes.keepers.length > 0 && zygotes.last().executed.length > 0);
    await expect(session.look('builtin', { path: 'x' }, { wait: 0.01 })).rejects.toMatchObject({
      code: 'session_busy',
      cause: { execution: 1 },
    });
    zygotes.last().finish();
    expect(await session.look('builtin', { path: 'x' }, patient)).toMatchObject({ text: 'x' });
    expect(zygotes.last().looked).toHaveLength(1);
  });

  it('is waited for by code that comes after it', async () => {
    const { session, zygotes } = openReadySession();
    await session.execute({ code: 'print x' }).done;
    let goOn = () => {};
    zygotes.last().onLook = () =>
      new Promise((resolve) => {
        goOn = resolve;
      });
    const look = session.look('builtin', { path: 'x' }, patient);
    await until(() => zygotes.last().looked.length > 0);
    const next = session.execute({ code: 'print y' });
    expect(zygotes.last().executed).toHaveLength(1);
    goOn();
    await look;
    await next.done;
    expect(zygotes.last().executed).toHaveLength(2);
  });
});
