import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type FileStore, openFileStore, type StoredFile } from '../../src/files/file-store.ts';
import { openSpills } from '../../src/files/spill.ts';
import type { InterpreterRequest } from '../../src/interpreters/interpreter.ts';
import { createAdmission } from '../../src/sessions/admission.ts';
import type { ExecutionRecord } from '../../src/sessions/execution-record.ts';
import { isLong } from '../../src/sessions/long-text.ts';
import { createServiceCalls, type ServiceCallRequest } from '../../src/sessions/service-calls.ts';
import { createSharedSessions } from '../../src/sessions/shared-sessions.ts';
import { createWorkspaceFiles } from '../../src/sessions/workspace-files.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { fakeEnvironment, fakeResources, fakeZygotes, until } from './fake-keepers.ts';

const ALICE = 'alice';

interface Limits {
  quota?: number;
  largestOutput?: number;
  rateLimit?: number;
  maxRunning?: number;
  most?: number;
}

/** A service whose code is steps, one a line: `print TEXT`, `write NAME TEXT`, `read NAME`, `remove NAME`, `list`, `show`, `wait`. */
async function openService({ quota = 0, largestOutput = 0, rateLimit = 0, maxRunning = 0, most = 5 }: Limits = {}) {
  const root = temporaryFolder();
  const zygotes = fakeZygotes();
  const files = openFileStore({ folder: join(root, 'files') });
  onTestFinished(() => files.close());
  const sharedSessions = createSharedSessions({
    resources: fakeResources(root, zygotes),
    folder: join(root, 'sessions'),
    mountsWorkspace: false,
    most,
    idle: 60,
    age: 60,
    keep: 60,
    ownerOf: files.ownerOf,
  });
  const ended: ExecutionRecord[] = [];
  const calls = createServiceCalls({
    sharedSessions,
    workspaceFiles: createWorkspaceFiles({ files, largestOutput, quota }),
    spills: await openSpills(join(root, 'spill')),
    admission: createAdmission({ rateLimit, maxRunning, onEnded: (record) => void ended.push(record) }),
    about: { environment: fakeEnvironment, sandbox: 'none', startedAt: 0 },
  });
  zygotes.onSpawn = (keeper) => {
    keeper.onExecute = ({ code }: InterpreterRequest) => {
      const workspace = keeper.spawned.cwd;
      for (const line of code.split('\n')) {
        const [step, name = '', ...rest] = line.split(' ');
        if (step === 'wait') return;
        if (step === 'print') keeper.print(`${[name, ...rest].join(' ')}\n`);
        if (step === 'read') keeper.print(`${readFileSync(join(workspace, name), 'utf8')}\n`);
        if (step === 'write') writeFileSync(join(workspace, name), rest.join(' '));
        if (step === 'list') keeper.print(`${readdirSync(workspace).join(' ')}\n`);
        if (step === 'remove') rmSync(join(workspace, name));
        if (step === 'show') keeper.show({ type: 'display', data: { 'image/png': 'aGVsbG8=' }, metadata: {} });
      }
      keeper.finish();
    };
  };
  const start = (code: string, more: Partial<ServiceCallRequest> = {}) =>
    calls.start({ owner: ALICE, interpreter: 'builtin', code, session: { alias: 'one' }, files: [], ...more });
  const run = async (code: string, more: Partial<ServiceCallRequest> = {}) => (await start(code, more)).finished;
  const upload = (text: string, name: string, more: object = {}): Promise<StoredFile> =>
    receive(files, sharedSessions.idOf(ALICE, 'one'), name, text, more);
  return { calls, start, run, upload, zygotes, files, sharedSessions, ended };
}

function receive(files: FileStore, session: string, name: string, text: string, more: object): Promise<StoredFile> {
  const source = (async function* () {
    yield Buffer.from(text);
  })();
  return files.receive({ session, owner: ALICE, name, limit: 1000, source, ...more });
}

const names = (files: { name: string }[]) => files.map(({ name }) => name);
const errorOf = (promise: Promise<unknown>) => promise.then(() => undefined).catch((error: unknown) => error);

describe('the files of a service call', () => {
  it('that were uploaded to its session are in the workspace before its code runs', async () => {
    const { run, upload } = await openService();
    await upload('1,2', 'table.csv');
    expect(await run('read table.csv')).toMatchObject({ stdout: '1,2\n', problems: [] });
  });

  it('that it wrote are kept, and not told again by a later call that leaves them alone', async () => {
    const { run, files } = await openService();
    const first = await run('write a.txt one');
    expect(names(first.files)).toEqual(['a.txt']);
    expect(readFileSync(files.pathOf((first.files[0] as { file: StoredFile }).file), 'utf8')).toBe('one');
    expect((await run('print x')).files).toEqual([]);
    expect(names((await run('write a.txt two')).files)).toEqual(['a.txt']);
  });

  it('are credited to the call that wrote them, also where calls of REST and of tools wait for each other', async () => {
    const { calls, start, zygotes, files } = await openService();
    const session = { alias: 'default' };
    const first = await start('wait', { session });
    const tool = await calls.sessionsOf(ALICE).start({ code: 'write tool.txt 2' });
    const last = await start('write rest.txt 3', { session });
    await until(() => zygotes.keepers.length > 0 && zygotes.last().executed.length === 1);
    writeFileSync(join(zygotes.last().spawned.cwd, 'first.txt'), '1');
    zygotes.last().finish();
    await tool.finished;
    expect(names((await first.finished).files)).toEqual(['first.txt']);
    expect(names((await last.finished).files)).toEqual(['rest.txt']);
    expect(names(files.list(first.sharedSession.session.id))).toEqual(['first.txt', 'tool.txt', 'rest.txt']);
  });

  it('that code has removed do not come back, neither with the next call nor when the session is opened again', async () => {
    const { run, upload, sharedSessions } = await openService({ most: 1 });
    await upload('1', 'a.txt');
    expect((await run('list\nremove a.txt')).stdout).toBe('a.txt\n');
    expect((await run('list')).stdout).toBe('\n');
    await run('print x', { owner: 'bob' });
    expect(sharedSessions.liveOf(ALICE)).toEqual([]);
    expect((await run('list')).stdout).toBe('\n');
  });

  it('that it refers to come under the name it gives, and are told as deleted once its code removes them', async () => {
    const { run, upload } = await openService();
    const { id } = await upload('x', 'upload.txt');
    const files = [{ id, name: 'data/renamed.txt', isCarried: true }];
    expect(await run('read data/renamed.txt', { files })).toMatchObject({ stdout: 'x\n' });
    expect(await run('remove data/renamed.txt', { files })).toMatchObject({
      deleted: ['data/renamed.txt'],
      problems: [],
    });
    const { problems } = await run('print x', { files });
    expect(problems).toEqual([expect.stringContaining('was removed by an earlier call')]);
  });

  it('that its code has not changed are told as inherited to a client that sends them with each call', async () => {
    const { run, upload } = await openService();
    const { id } = await upload('x', 'a.txt');
    const { files } = await run('print x', { files: [{ id, isCarried: true }] });
    expect(files).toMatchObject([{ name: 'a.txt', inherited: { id } }]);
  });

  it('of another owner are not found by their id', async () => {
    const { run, upload } = await openService();
    const { id } = await upload('secret', 'a.txt');
    const { problems } = await run('print x', { owner: 'bob', files: [{ id, isCarried: false }] });
    expect(problems).toEqual([`The file ${id} is no longer kept here; upload it again.`]);
  });

  it('with a name that leads out of the workspace are refused before anything runs', async () => {
    const { start, upload, zygotes } = await openService();
    const { id } = await upload('x', 'a.txt');
    const error = await errorOf(start('print x', { files: [{ id, name: '../a.txt', isCarried: false }] }));
    expect(error).toMatchObject({ code: 'invalid_input' });
    expect(zygotes.keepers).toEqual([]);
  });

  it('that are read-only are not kept as outputs, whatever code does to its copy', async () => {
    const { run, upload } = await openService();
    const { id } = await upload('x', 'a.txt', { readOnly: true });
    const files = [{ id, isCarried: false }];
    expect((await run('remove a.txt\nwrite a.txt changed', { files })).files).toEqual([]);
  });

  it('are kept up to the quota of the session and the largest size, and what is not kept is told', async () => {
    const { run } = await openService({ quota: 10, largestOutput: 6 });
    const first = await run('write a.txt 12345\nwrite b.txt 1234567');
    expect(names(first.files)).toEqual(['a.txt']);
    expect(first.problems).toEqual([expect.stringContaining('"b.txt" could not be kept')]);
    const second = await run('write c.txt 123456');
    expect(second.files).toEqual([]);
    expect(second.problems).toEqual([expect.stringContaining('may have 10 bytes in all')]);
  });

  it('are made of figures that code has shown and not saved', async () => {
    const { run } = await openService();
    expect(names((await run('show')).files)).toEqual(['figure-1-1.png']);
  });

  it('that wrote nothing before it was cancelled in the queue has none', async () => {
    const { start, zygotes } = await openService();
    const abort = new AbortController();
    const first = await start('wait');
    const second = await start('write a.txt 1', { signal: abort.signal });
    await until(() => zygotes.keepers.length > 0 && zygotes.last().executed.length === 1);
    abort.abort();
    zygotes.last().finish();
    await first.finished;
    expect(await second.finished).toMatchObject({
      record: { outcome: 'cancelled' },
      files: [],
      problems: [],
      stdout: '',
    });
  });
});

describe('the output of a service call', () => {
  it('is its text as long as that is short, and a reader of it once it is long', async () => {
    const { run } = await openService();
    expect(await run('print hello')).toMatchObject({ stdout: 'hello\n', stderr: '' });
    const { stdout } = await run(`print ${'x'.repeat(70_000)}`);
    if (!isLong(stdout)) throw new Error('it is not long');
    let text = '';
    for await (const piece of stdout.escaped()) text += Buffer.from(piece).toString();
    expect(text).toBe(`${'x'.repeat(70_000)}\\n`);
  });

  it('names the workspace as code finds it on a machine where /mnt/data cannot be mounted', async () => {
    const { run, zygotes } = await openService();
    await run('print /mnt/data/a.txt');
    expect(zygotes.last().executed[0]?.code).toBe(`print ${zygotes.last().spawned.cwd}/a.txt`);
  });
});

describe('the limits of a caller', () => {
  it('on executions at once hold for REST and for tools together, and not for another caller', async () => {
    const { calls, start, zygotes } = await openService({ maxRunning: 2 });
    const first = await start('wait');
    const tool = await calls.sessionsOf(ALICE).start({ code: 'print x' });
    expect(await errorOf(start('print x'))).toMatchObject({ code: 'rate_limited' });
    expect(await errorOf(calls.sessionsOf(ALICE).start({ code: 'print x' }))).toMatchObject({ code: 'rate_limited' });
    await (await start('print x', { owner: 'bob' })).finished;
    await tool.finished;
    zygotes.keepers.find(({ executed }) => executed[0]?.code === 'wait')?.finish();
    await first.finished;
    await (await start('print x')).finished;
  });

  it('on executions in a minute hold for REST and for tools together', async () => {
    const { calls, run } = await openService({ rateLimit: 2 });
    await run('print x');
    await (await calls.sessionsOf(ALICE).start({ code: 'print x' })).finished;
    expect(await errorOf(run('print x'))).toMatchObject({ code: 'rate_limited' });
  });

  it('on open sessions hold for REST and for tools together', async () => {
    const { calls, start } = await openService({ most: 1 });
    await start('wait');
    expect(await errorOf(calls.sessionsOf(ALICE).start({ code: 'print x' }))).toMatchObject({ code: 'rate_limited' });
    expect(await errorOf(calls.sessionsOf(ALICE).use('new', () => {}))).toMatchObject({ code: 'rate_limited' });
  });

  it('count a call until its files are kept, and tell of its end whichever way it came', async () => {
    const { calls, run, ended } = await openService();
    await run('print x');
    await (await calls.sessionsOf(ALICE).start({ code: 'print y' })).finished;
    await until(() => ended.length === 2);
    expect(ended.map(({ code, outcome }) => [code, outcome])).toEqual([
      ['print x', 'ok'],
      ['print y', 'ok'],
    ]);
  });
});

describe('the session of a service call', () => {
  it('is released when the call has finished, and not before', async () => {
    const { start, sharedSessions, zygotes } = await openService({ most: 1 });
    const first = await start('wait', { session: { isForOneCall: true } });
    expect(sharedSessions.size).toBe(1);
    await until(() => zygotes.keepers.length > 0 && zygotes.last().executed.length === 1);
    expect(await errorOf(start('print x', { session: {} }))).toMatchObject({ code: 'rate_limited' });
    zygotes.last().finish();
    await first.finished;
    await until(() => sharedSessions.size === 0);
  });

  it('of a tool that names none is the default one of its caller, and `new` is another', async () => {
    const { calls } = await openService();
    const sessions = calls.sessionsOf(ALICE);
    expect(calls.hasDefault(ALICE)).toBe(false);
    const one = await sessions.start({ code: 'print x' });
    const same = await sessions.start({ code: 'print x' });
    const other = await sessions.start({ code: 'print x', session: 'new' });
    expect(same.session.id).toBe(one.session.id);
    expect(other.session.id).not.toBe(one.session.id);
    expect(calls.hasDefault(ALICE)).toBe(true);
    expect(calls.hasDefault('bob')).toBe(false);
    expect(await errorOf(calls.sessionsOf('bob').use(one.session.id, () => {}))).toMatchObject({
      code: 'unknown_session',
    });
  });
});
