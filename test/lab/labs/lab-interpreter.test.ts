import { expect, onTestFinished, test } from 'vitest';
import type { InterpreterEvent } from '../../../src/interpreters/interpreter.ts';
import { openLabInterpreter } from '../../../src/lab/labs/lab-interpreter.ts';
import { createRemoteLab } from '../../../src/lab/remote/remote-lab.ts';
import { openCutProxy } from '../cut-proxy.ts';
import { createFakeLabWithPython } from '../fake-lab.ts';
import { serveLab, TOKEN } from '../served.ts';

const ENDING = { status: 'ok', wall: 1, cpu: 0, peak: 0, ended: [] };

/** The interpreter of a lab elsewhere, whose Python is the test itself. */
async function open() {
  const fake = createFakeLabWithPython();
  const proxy = await openCutProxy((await serveLab(fake.lab)).url);
  const remote = createRemoteLab({ endpoint: proxy.url, token: TOKEN, waits: [0, 0] });
  const interpreter = await openLabInterpreter(async (name, args, context) => ({
    answer: await remote.call(name, args, context),
  }));
  onTestFinished(async () => {
    await interpreter.stop();
    await remote.close();
  });
  const events: InterpreterEvent[] = [];
  const waiting = new Map<string, (event: InterpreterEvent) => void>();
  interpreter.onEvent((event) => {
    events.push(event);
    if (event.kind === 'done') waiting.get(event.id)?.(event);
  });
  /** Starts code; gives how it ended, in time. */
  const execute = (id: string, code: string, cell: number) => {
    const done = new Promise<InterpreterEvent>((resolve) => waiting.set(id, resolve));
    interpreter.execute({ id, code, cell, timeout: null, limit: 1000 });
    return done;
  };
  /** Starts code, and loses the lab while it runs. */
  const lose = async (id: string, code: string, cell: number) => {
    const number = fake.calls.length;
    const done = execute(id, code, cell);
    const there = await fake.started(number);
    proxy.refuse(Number.POSITIVE_INFINITY);
    proxy.cut();
    expect(await done).toMatchObject({ ending: { status: 'error', errorName: 'lab_unreachable' } });
    proxy.refuse(0);
    return there;
  };
  return { ...fake, interpreter, events, execute, lose };
}

test('code whose lab was out of reach is continued when it is asked for again, and does not run twice', async () => {
  const { lose, execute, calls, events } = await open();
  const there = await lose('a', 'n += 1', 1);
  there.context.output?.({ type: 'stream', name: 'stdout', text: 'printed meanwhile' });
  const again = execute('b', 'n += 1', 2);
  there.answer({ ending: ENDING, life: 1 });
  expect(await again).toMatchObject({ kind: 'done', id: 'b', ending: ENDING });
  expect(events).toContainEqual(
    expect.objectContaining({ id: 'b', output: { type: 'stream', name: 'stdout', text: 'printed meanwhile' } }),
  );
  expect(calls).toHaveLength(1);
});

test('code that was continued can be interrupted, and runs anew the next time', async () => {
  const { lose, execute, started, interpreter } = await open();
  const there = await lose('a', 'n += 1', 1);
  const again = execute('b', 'n += 1', 2);
  interpreter.interrupt('b', 'cancelled');
  const interruption = await started(1);
  expect(interruption).toMatchObject({ name: 'interrupt_code', args: { run: there.args.run } });
  interruption.answer({ ok: true });
  there.answer({ ending: ENDING, life: 1 });
  await again;
  const third = execute('c', 'n += 1', 3);
  const anew = await started(2);
  expect(anew.args).toMatchObject({ code: 'n += 1', cell: 3 });
  expect(anew.args.run).not.toBe(there.args.run);
  anew.answer({ ending: ENDING, life: 1 });
  expect(await third).toMatchObject({ ending: ENDING });
});

test('other code is not taken for what was out of reach', async () => {
  const { lose, execute, started } = await open();
  const there = await lose('a', 'n += 1', 1);
  const other = execute('b', 'n += 2', 2);
  const second = await started(1);
  expect(second.args).toMatchObject({ code: 'n += 2', cell: 2 });
  second.answer({ ending: ENDING, life: 1 });
  expect(await other).toMatchObject({ ending: ENDING });
  there.answer({ ending: ENDING, life: 1 });
});
