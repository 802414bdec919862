import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { openSpills } from '../../../src/files/spill.ts';
import { createWatches, type Watched } from '../../../src/surfaces/workbench/watches.ts';
import { until } from '../../sessions/fake-keepers.ts';
import { temporaryFolder } from '../../temporary-folder.ts';
import { openWorkbench } from './open-workbench.ts';

const EVENTS = '/sessions/default/events';
type Workbench = Awaited<ReturnType<typeof openWorkbench>>;

async function startWaiting({ sessions, zygotes }: Workbench) {
  const started = await sessions.start({ code: 'wait', origin: 'agent' });
  const { number } = started.execution.record;
  await until(() => zygotes.keepers.length > 0 && zygotes.last().executed.at(-1)?.id === String(number));
  return { ...started, keeper: zygotes.last() };
}

const typesOf = (told: { event: { type: string } }[]) => told.map(({ event }) => event.type);

describe('the events of a session', () => {
  it('begin with a snapshot, and tell an execution by another surface from its queue to its end', async () => {
    const bench = await openWorkbench();
    await bench.run('print before');
    const reader = await bench.read(EVENTS);
    await reader.find(({ type }) => type === 'snapshot');
    await bench.run('print x');
    await reader.find(({ type }) => type === 'files');
    const [first, ...others] = reader.told.map(({ event }) => event);
    expect(first).toMatchObject({ session: { executions: 1 }, executions: [{ number: 1 }], has_more: false });
    expect(others.at(0)).toMatchObject({ type: 'execution', execution: { number: 2, origin: 'agent' } });
    expect(others.at(0).execution).not.toHaveProperty('outputs');
    const output = others.find(({ type }) => type === 'output');
    expect(output).toEqual({
      type: 'output',
      execution: 2,
      offset: 0,
      output: { type: 'stream', index: 0, name: 'stdout', text: 'x\n' },
    });
    expect(others.slice(-3)).toMatchObject([
      { type: 'execution', execution: { state: 'done', outcome: 'ok', text_length: 2 } },
      { type: 'variables', interpreter: 'builtin' },
      { type: 'files' },
    ]);
  });

  it('put together what is printed in one moment, and keep its order with what is shown', async () => {
    const bench = await openWorkbench();
    const reader = await bench.read(EVENTS);
    const { keeper } = await startWaiting(bench);
    for (let count = 0; count < 100; count += 1) keeper.print('.');
    keeper.show({ type: 'display', data: { 'text/plain': 'shown' }, metadata: {}, displayId: 'd' });
    keeper.print('after');
    keeper.finish();
    await reader.find(({ type, execution }) => type === 'execution' && execution.state === 'done');
    const told = reader.told.filter(({ event }) => event.type === 'output').map(({ event }) => event);
    expect(told).toMatchObject([
      { offset: 0, output: { index: 0, text: '.'.repeat(100) } },
      { offset: 100, output: { index: 1, display_id: 'd', data: { 'text/plain': 'shown' } } },
      { offset: 106, output: { index: 2, text: 'after' } },
    ]);
  });

  it('tell a display that is updated many times in one moment once, at its place', async () => {
    const bench = await openWorkbench();
    const reader = await bench.read(EVENTS);
    const { keeper } = await startWaiting(bench);
    const show = (text: string, update: boolean) =>
      keeper.show({ type: 'display', data: { 'text/plain': text }, metadata: {}, displayId: 'bar', update });
    show('0', false);
    for (let count = 1; count <= 50; count += 1) show(String(count), true);
    const update = await reader.find(({ type }) => type === 'update');
    expect(update).toMatchObject({ execution: 1, index: 0, output: { data: { 'text/plain': '50' } } });
    expect(typesOf(reader.told).filter((type) => type === 'update')).toHaveLength(1);
  });

  it('say of text that comes faster than anybody reads where it is, and hold nothing up', async () => {
    const bench = await openWorkbench();
    const reader = await bench.read(EVENTS);
    const { keeper } = await startWaiting(bench);
    for (let count = 0; count < 100; count += 1) keeper.print('x'.repeat(10_000));
    keeper.finish();
    await reader.find(({ type, execution }) => type === 'execution' && execution.state === 'done');
    const events = reader.told.map(({ event }) => event);
    const text = events.flatMap((event) => (event.type === 'output' ? [event.output.text] : [])).join('');
    const skipped = events.find(({ type }) => type === 'skipped');
    expect(skipped).toMatchObject({ execution: 1, from: text.length, to: 1_000_000 });
    expect(text.length).toBeLessThanOrEqual(65_536);
    expect(keeper.acknowledged.length).toBeGreaterThan(0);
  });

  it('go on after the event that a reader names, and give two readers the same', async () => {
    const bench = await openWorkbench();
    const one = await bench.read(EVENTS);
    await bench.run('print 1');
    await one.find(({ type }) => type === 'files');
    await one.close();
    await bench.run('print 2');
    const last = one.told.at(-1)?.id ?? '';
    const again = await bench.read(EVENTS, { 'last-event-id': last });
    const other = await bench.read(`${EVENTS}?after=${last}`);
    for (const reader of [again, other]) await reader.find(({ type }) => type === 'files');
    expect(again.told).toEqual(other.told);
    expect(again.told[0]?.event).toMatchObject({ type: 'execution', execution: { number: 2 } });
    expect(typesOf(again.told)).not.toContain('snapshot');
  });

  it.each(['another-on.3', 'nonsense', '../../etc', 'AAAAAAAAAA.99999'])('begin anew for the id %s', async (after) => {
    const bench = await openWorkbench();
    const reader = await bench.read(`${EVENTS}?after=${encodeURIComponent(after)}`);
    expect(await reader.find(({ type }) => type === 'snapshot')).toMatchObject({ executions: [] });
  });

  it('have in a snapshot all that a running execution has shown, and go on right after it', async () => {
    const bench = await openWorkbench();
    const early = await bench.read(EVENTS);
    const { keeper } = await startWaiting(bench);
    await early.find(({ type }) => type === 'execution');
    keeper.print('one ');
    const late = await bench.read(EVENTS);
    const snapshot = await late.find(({ type }) => type === 'snapshot');
    keeper.print('two');
    await late.find(({ type }) => type === 'output');
    expect(snapshot.executions[0]).toMatchObject({ text_length: 4, outputs: [{ text: 'one ' }] });
    expect(late.told[1]?.event).toMatchObject({ type: 'output', offset: 4, output: { text: 'two' } });
  });

  it('tell that a session was evicted, and go on when it is opened again', async () => {
    const bench = await openWorkbench({ maxSessions: '1' });
    await bench.run('print x');
    const reader = await bench.read(EVENTS);
    await reader.find(({ type }) => type === 'snapshot');
    await bench.post('/sessions', {});
    expect(await reader.find(({ type }) => type === 'closed')).toMatchObject({ reason: 'evicted' });
    await bench.run('print y');
    expect(await reader.find(({ type }) => type === 'output')).toMatchObject({ execution: 2 });
    expect(reader.isOver).toBe(false);
  });

  it('end when the session is removed, and when the server stops', async () => {
    const bench = await openWorkbench();
    await bench.run('print x');
    const one = await bench.read(EVENTS);
    await one.find(({ type }) => type === 'snapshot');
    const id = one.told[0]?.event.session.id;
    await bench.app.request(`/sessions/${id}`, { method: 'DELETE' });
    expect(await one.find(({ type }) => type === 'closed')).toMatchObject({ reason: 'removed' });
    await until(() => one.isOver);
    await bench.run('print x');
    const two = await bench.read(EVENTS);
    await two.find(({ type }) => type === 'snapshot');
    bench.workbench.close();
    expect(await two.find(({ type }) => type === 'closed')).toMatchObject({ reason: 'stopping' });
    await until(() => two.isOver);
    expect((await bench.app.request(EVENTS)).status).toBe(503);
  });

  it('tell of a file that somebody puts into the workspace, and of an interpreter that is started afresh', async () => {
    const bench = await openWorkbench();
    await bench.run('print x');
    const reader = await bench.read(EVENTS);
    await reader.find(({ type }) => type === 'snapshot');
    await bench.app.request('/sessions/default/workspace/file?path=a.txt', { method: 'PUT', body: 'a' });
    await reader.find(({ type }) => type === 'files');
    await bench.sessions.use(undefined, (session) => session.reset('builtin'));
    expect(await reader.find(({ type }) => type === 'variables')).toEqual({
      type: 'variables',
      interpreter: 'builtin',
    });
  });
});

describe("the events of a caller's sessions", () => {
  it('list all at first, then tell what changes, opens and goes', async () => {
    const bench = await openWorkbench();
    const reader = await bench.read('/events');
    expect(await reader.find(({ type }) => type === 'sessions')).toMatchObject({ sessions: [{ is_default: true }] });
    const { session } = await bench.run('print x');
    expect(await reader.find((event) => event.session?.executions === 1)).toMatchObject({ type: 'session' });
    const other = await bench.create();
    await reader.find((event) => event.session?.id === other);
    await bench.app.request(`/sessions/${session.id}`, { method: 'DELETE' });
    expect(await reader.find(({ type }) => type === 'session-removed')).toEqual({
      type: 'session-removed',
      id: session.id,
    });
  });
});

describe('what is watched', () => {
  async function openWatches(limits: Parameters<typeof createWatches>[1] = {}) {
    const watches = createWatches(await openSpills(join(temporaryFolder(), 'spill')), limits);
    let tell: (event: object) => void = () => {};
    const stop = vi.fn();
    const watched: Watched = {
      snapshot: () => ({ type: 'snapshot' }),
      begin: vi.fn((given) => {
        tell = given;
        return stop;
      }),
    };
    return { watches, watched, stop, tell: (event: object) => tell(event) };
  }
  const textOf = (bytes: Uint8Array | undefined) => Buffer.from(bytes ?? []).toString();

  it('is computed for all readers once, and no longer some time after the last has gone', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const { watches, watched, stop } = await openWatches();
      const readers = [1, 2].map(() => watches.read('me', 'a', undefined, watched));
      expect(watched.begin).toHaveBeenCalledTimes(1);
      for (const reader of readers) reader.done();
      vi.advanceTimersByTime(59_000);
      watches.read('me', 'a', undefined, watched).done();
      vi.advanceTimersByTime(59_000);
      expect([vi.mocked(watched.begin).mock.calls.length, stop.mock.calls.length]).toEqual([1, 0]);
      vi.advanceTimersByTime(2000);
      expect(stop).toHaveBeenCalledTimes(1);
    } finally {
      vi.useRealTimers();
    }
  });

  it('gives a reader that was too slow a snapshot in place of what was dropped, and then what is new', async () => {
    const { watches, watched, tell } = await openWatches({ mostBytes: 100_000 });
    const reader = watches.read('me', 'a', undefined, watched);
    const first = textOf(await reader.next());
    for (let count = 0; count < 1000; count += 1) tell({ type: 'output', count, text: 'x'.repeat(1000) });
    let snapshots = 0;
    let bytes = 0;
    while (snapshots === 0) {
      const piece = textOf(await reader.next());
      bytes += piece.length;
      if (piece.includes('"snapshot"')) snapshots += 1;
    }
    expect(first).toMatch(/^id: \S+\.0\ndata: {"type":"snapshot"}/);
    expect(bytes).toBeLessThan(200_000);
    const next = reader.next();
    tell({ type: 'output', count: 1000 });
    expect(textOf(await next)).toContain('"count":1000}');
    reader.done();
  });

  it('is refused to a caller that reads too much at once, until it stops', async () => {
    const { watches, watched } = await openWatches({ mostReaders: 1 });
    const reader = watches.read('me', 'a', undefined, watched);
    expect(() => watches.read('me', 'b', undefined, watched)).toThrow(/streams of events/);
    watches.read('you', 'a', undefined, watched).done();
    reader.done();
    watches.read('me', 'b', undefined, watched).done();
  });
});
