/** Runs code in a remote `cuvette serve` that is attached as a lab without a model, through the labs of a process and by an agent over stdio. */

import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { ExitReport, Output } from '../../../src/interpreters/interpreter.ts';
import { createLabs, type Labs } from '../../../src/lab/labs/labs.ts';
import { status } from '../../../src/lab/primitives/lab-status.ts';
import { temporaryFolder } from '../../temporary-folder.ts';
import { allGone, createHome, type Home, processesOf, startAgent, useHome, waitFor } from '../harness.ts';
import { endHome, ok, startService, useService } from '../http/service.ts';
import { startCutProxy } from './cut-proxy.ts';

const KEY = 'a-key-that-is-long-enough-for-anyone';
/** One pixel. */
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const env = { CUVETTE_API_KEY: KEY };
const service = await useService({ env, preload: 'none' });
const laptop = useHome({ preload: 'none' });
const quiet = { signal: new AbortController().signal, progress: () => {} };

interface Attached {
  labs: Labs;
  data: string;
  start(code: string, more?: { signal?: AbortSignal; run?: string; timeout?: number; limit?: number }): Started;
  call(primitive: string, args?: Record<string, unknown>): Promise<Record<string, unknown>>;
}

interface Started {
  /** What it has shown so far. */
  outputs: Output[];
  printed(): string;
  ended: Promise<{ ending: ExitReport; life: number }>;
}

async function attach(url = service.url): Promise<Attached> {
  const data = temporaryFolder();
  const labs = createLabs({ data, cache: data, project: data });
  onTestFinished(() => labs.close());
  await labs.attach('default', url, KEY, quiet);
  return {
    labs,
    data,
    call: async (primitive, args = {}) => (await labs.call('default', primitive, args, quiet)).answer,
    start(code, { signal = quiet.signal, ...more } = {}) {
      const outputs: Output[] = [];
      const context = { ...quiet, signal, output: (one: Output) => outputs.push(one) };
      const args = { code, run: 'a run', timeout: 60, ...more };
      const ended = labs.call('default', 'run_code', args, context).then(({ answer }) => answer) as Started['ended'];
      ended.catch(() => {});
      return {
        outputs,
        printed: () => outputs.map((one) => (one.type === 'stream' ? one.text : '')).join(''),
        ended,
      };
    },
  };
}

/** How many executions wait for their turn in a session of the service. */
async function waitingIn(session: string): Promise<number | undefined> {
  const reply = ok(await service.as({ 'x-api-key': KEY }).get('/sessions'));
  return reply.json<{ sessions: { id: string; queued: number }[] }>().sessions.find(({ id }) => id === session)?.queued;
}

/** Code that goes on when the test opens the gate. */
function createGate(name: string, { data }: Home = service.home) {
  const sessions = join(data, 'sessions');
  const find = () =>
    readdirSync(sessions)
      .map((id) => ({ id, path: join(sessions, id, 'workspace', name) }))
      .find(({ path }) => existsSync(path));
  return {
    code: `import os, time\nopen("${name}", "w").close()\nwhile os.path.exists("${name}"): time.sleep(0.02)`,
    /** The session whose code stands before it. */
    reached: async () => (await waitFor(`code before ${name}`, find)).id,
    open: () => rmSync(find()?.path ?? ''),
  };
}

/** What is printed in one go may come in several pieces. */
function joined(outputs: Output[]): Output[] {
  const all: Output[] = [];
  for (const one of outputs) {
    const last = all.at(-1);
    const isSame = one.type === 'stream' && last?.type === 'stream' && last.name === one.name;
    if (isSame) all.splice(-1, 1, { ...last, text: last.text + one.text });
    else all.push(one);
  }
  return all;
}

describe('code in a remote service', () => {
  test('keeps its variables from one run to the next, apart from those of another attachment', async () => {
    const { start } = await attach();
    const first = await start('x = 6 * 7').ended;
    expect(first.ending.status).toBe('ok');
    const second = start('x');
    expect((await second.ended).life).toBe(first.life);
    expect(second.outputs).toMatchObject([{ type: 'result', data: { 'text/plain': '42' } }]);
    const other = await (await attach()).start('x').ended;
    expect(other.ending).toMatchObject({ status: 'error', errorName: 'NameError' });
    expect(other.life).not.toBe(first.life);
  });

  test('runs in another Python, with a number of its own, after the name was detached', async () => {
    const { labs, start } = await attach();
    const { life } = await start('x = 6 * 7').ended;
    await labs.detach('default');
    await labs.attach('default', service.url, KEY, quiet);
    const again = await start('x').ended;
    expect(again.ending).toMatchObject({ status: 'error', errorName: 'NameError' });
    expect(again.life).not.toBe(life);
  });

  test('has variables of its own under each name of the same service and keeps them when a name is attached again', async () => {
    const { labs, start } = await attach();
    await labs.attach('second', service.url, KEY, quiet);
    await start('x = 6 * 7').ended;
    const { answer } = await labs.call('second', 'run_code', { code: 'x', run: 'there' }, quiet);
    expect(answer.ending).toMatchObject({ status: 'error', errorName: 'NameError' });
    await labs.attach('default', service.url, KEY, quiet);
    const again = start('print(x)');
    await again.ended;
    expect(again.printed()).toBe('42\n');
  });

  test('streams what it shows as it is shown, in order', async () => {
    const { start } = await attach();
    const gate = createGate('order');
    const run = start(
      `import sys\nfrom IPython.display import display, HTML\nprint("first", flush=True)\n${gate.code}\nprint("second", file=sys.stderr, flush=True)\ndisplay(HTML("<b>third</b>"))\n1 / 0`,
    );
    await gate.reached();
    await waitFor('the first line', () => run.printed() === 'first\n');
    gate.open();
    const { ending } = await run.ended;
    expect(joined(run.outputs)).toMatchObject([
      { type: 'stream', name: 'stdout', text: 'first\n' },
      { type: 'stream', name: 'stderr', text: 'second\n' },
      { type: 'display', data: { 'text/html': '<b>third</b>' } },
      {
        type: 'error',
        ename: 'ZeroDivisionError',
        traceback: expect.arrayContaining(['ZeroDivisionError: division by zero']),
      },
    ]);
    expect(ending).toMatchObject({ status: 'error', errorName: 'ZeroDivisionError' });
  });

  test.each([
    [
      'a time limit',
      'import time; time.sleep(60)',
      { timeout: 0.5 },
      { stopped: { why: 'timeout', rung: 'interrupted' } },
    ],
    ['its own exit', 'import sys; sys.exit(3)', {}, { status: 'exit', exitCode: 3 }],
    ['the end of its Python', 'import os; os._exit(7)', {}, { status: 'death', death: { exit: 7, signal: null } }],
    ['a crash', 'import os; os.kill(os.getpid(), 11)', {}, { status: 'death', death: { signal: 'SIGSEGV' } }],
    ['too much output', 'while True: print("x" * 99)', { limit: 5000 }, { stopped: { why: 'output-limit' } }],
  ])('that is ended by %s says so', async (_, code, more, expected) => {
    const { ending } = await (await attach()).start(code, more).ended;
    expect(ending).toMatchObject(expected);
  });

  test('that was interrupted ends, and its variables stay', async () => {
    const { start, call } = await attach();
    await start('kept = 1').ended;
    const gate = createGate('interrupted');
    const run = start(gate.code, { run: 'long' });
    await gate.reached();
    await call('interrupt_code', { run: 'long' });
    expect((await run.ended).ending).toMatchObject({ stopped: { why: 'cancelled', rung: 'interrupted' } });
    const after = start('print(kept)');
    await after.ended;
    expect(after.printed()).toBe('1\n');
  });

  test('that waits for another run of the same attachment can be stopped at once, before it runs', async () => {
    const { start, call } = await attach();
    const gate = createGate('waiting');
    const first = start(gate.code, { run: 'first' });
    const session = await gate.reached();
    const second = start('ran = True', { run: 'second' });
    const patience = new AbortController();
    const third = start('ran = True', { run: 'third', signal: patience.signal });
    const fourth = start('after = True', { run: 'fourth' });
    await call('interrupt_code', { run: 'second' });
    expect((await second.ended).ending).toMatchObject({ stopped: { why: 'cancelled' } });
    patience.abort();
    await expect(third.ended).rejects.toThrow(/abort/i);
    await waitFor('only the fourth waits in the service', async () => (await waitingIn(session)) === 1);
    expect(await Promise.race([first.ended, fourth.ended, 'both wait'])).toBe('both wait');
    gate.open();
    expect((await first.ended).ending.status).toBe('ok');
    expect((await fourth.ended).ending.status).toBe('ok');
    expect(await call('list_variables')).not.toMatchObject({
      variables: expect.arrayContaining([expect.objectContaining({ name: 'ran' })]),
    });
  });

  test('does not go on when its caller cancels', async () => {
    const { start, call } = await attach();
    const gate = createGate('given-up');
    const patience = new AbortController();
    const run = start(gate.code, { signal: patience.signal });
    await gate.reached();
    patience.abort();
    await expect(run.ended).rejects.toThrow(/abort/i);
    // Waits for what runs.
    const { variables } = await call('list_variables');
    expect(variables).toEqual(expect.arrayContaining([expect.objectContaining({ name: 'os' })]));
  });

  test('has variables that can be listed and deleted', async () => {
    const { start, call } = await attach();
    expect(await call('list_variables')).toEqual({ variables: [] });
    await start('n = [1, 2, 3]').ended;
    expect(await call('list_variables')).toMatchObject({ variables: [{ name: 'n', type: 'list', length: 3 }] });
    const before = await call('describe_code');
    expect(before).toMatchObject({ version: expect.stringMatching(/^3\./), life: expect.any(Number) });
    await call('reset_code');
    expect(await call('list_variables')).toEqual({ variables: [] });
    expect(await call('describe_code')).toMatchObject({ life: Number(before.life) + 1 });
  });
});

describe('a lost connection', () => {
  test('is made again, and every output comes once', async () => {
    const proxy = await startCutProxy(service.url);
    const { start } = await attach(proxy.url);
    const gate = createGate('cut');
    const run = start(`print("before", flush=True)\n${gate.code}\nprint("after")`);
    await gate.reached();
    await waitFor('the first line', () => run.printed() === 'before\n');
    proxy.cut();
    gate.open();
    expect((await run.ended).ending.status).toBe('ok');
    expect(run.printed()).toBe('before\nafter\n');
  });

  test('to a service that is restarted meanwhile is made again too', async () => {
    const home = createHome({ preload: 'none' });
    onTestFinished(() => endHome(home));
    const before = await startService({ home, env });
    const proxy = await startCutProxy(before.url);
    const { start } = await attach(proxy.url);
    const gate = createGate('restart', home);
    const run = start(`print("before", flush=True)\n${gate.code}\nprint("after")`);
    await gate.reached();
    await waitFor('the first line', () => run.printed() === 'before\n');
    await before.stop('SIGKILL');
    const after = await startService({ home, env });
    proxy.leadTo(after.url);
    gate.open();
    expect((await run.ended).ending.status).toBe('ok');
    expect(run.printed()).toBe('before\nafter\n');
    await after.stop();
  });

  test('between two runs does no harm', async () => {
    const proxy = await startCutProxy(service.url);
    const { start } = await attach(proxy.url);
    await start('x = 1').ended;
    proxy.cut();
    const run = start('print(x)');
    await run.ended;
    expect(run.printed()).toBe('1\n');
  });

  test('before the first event of the code is resumed, and the code runs once', async () => {
    const proxy = await startCutProxy(service.url);
    const { start } = await attach(proxy.url);
    await start('runs = 0').ended;
    const gate = createGate('unheard');
    proxy.silence();
    const run = start(`runs += 1\n${gate.code}\nprint(runs)`);
    await gate.reached();
    proxy.cut();
    gate.open();
    expect((await run.ended).ending.status).toBe('ok');
    expect(run.printed()).toBe('1\n');
  });

  test('that stays lost for a while before the first event of the code is resumed too', async () => {
    const proxy = await startCutProxy(service.url);
    const { start } = await attach(proxy.url);
    const gate = createGate('away');
    proxy.silence();
    const run = start(`${gate.code}\nprint("once")`);
    await gate.reached();
    proxy.leadTo('http://127.0.0.1:1');
    proxy.cut();
    await sleep(2000);
    proxy.leadTo(service.url);
    gate.open();
    expect((await run.ended).ending.status).toBe('ok');
    expect(run.printed()).toBe('once\n');
  });

  test('to a service that is gone is an error that says what to do', async () => {
    const proxy = await startCutProxy(service.url);
    const { start } = await attach(proxy.url);
    proxy.leadTo('http://127.0.0.1:1');
    proxy.cut();
    await expect(start('1').ended).rejects.toMatchObject({
      code: 'lab_unreachable',
      message: expect.stringMatching(/cannot be reached.*cuvette serve runs there/s),
    });
  });
});

test('a session that the remote service has forgotten is replaced, and the output says so', async () => {
  const { start, call } = await attach();
  const gate = createGate('forgotten');
  const first = start(`x = 1\n${gate.code}`);
  const session = await gate.reached();
  gate.open();
  await first.ended;
  expect((await service.as({ 'x-api-key': KEY }).send('DELETE', `/sessions/${session}`)).status).toBe(200);
  expect(await call('list_variables')).toEqual({ variables: [] });
  const second = start('x');
  expect((await second.ended).ending).toMatchObject({ errorName: 'NameError' });
  expect(second.printed()).toContain('has forgotten the session');
});

describe('attaching a service', () => {
  test('reports that there is no model, in the form of every lab', async () => {
    const { call } = await attach();
    const health = await call('colab_status');
    expect(status.output.parse(health)).toMatchObject({ ok: true, model_id: 'none', engine: 'none' });
    expect(health.sandbox).toMatch(/^(on|none)/);
  });

  test.each(['capture_acts', 'train_probe', 'list_probes', 'causality_protocol'])(
    'that runs code alone does not offer %s, which is refused',
    async (primitive) => {
      const { call } = await attach();
      await expect(call(primitive)).rejects.toMatchObject({
        code: 'unknown_model',
        message: expect.stringMatching(/runs code alone, and has no model.*cuvette lab serve/s),
      });
    },
  );

  test.each([
    ['without a key', undefined],
    ['with a wrong key', 'wrong'],
  ])('%s is refused', async (_, token) => {
    const data = temporaryFolder();
    const labs = createLabs({ data, cache: data, project: data });
    await expect(labs.attach('default', service.url, token, quiet)).rejects.toMatchObject({
      code: 'unauthorized',
      message: expect.stringContaining(service.url),
    });
    expect(existsSync(join(data, 'lab'))).toBe(false);
  });

  test('that calls itself healthy but is not Cuvette is refused with the reason', async () => {
    const other = createServer((_, response) => response.end('{"status":"healthy"}'));
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void other.close());
    await expect(attach(`http://127.0.0.1:${(other.address() as AddressInfo).port}`)).rejects.toMatchObject({
      code: 'lab_unreachable',
      message: expect.stringContaining('does not answer as Cuvette does'),
    });
  });

  test('stores the address and, apart from it, the key, and closing ends the Python there', async () => {
    const { labs, data, start } = await attach();
    const gate = createGate('left');
    const run = start(gate.code);
    const session = await gate.reached();
    gate.open();
    await run.ended;
    expect(processesOf(session)).not.toEqual([]);
    await labs.close();
    await allGone(session);
    expect(readdirSync(join(data, 'lab')).sort()).toEqual(['sessions.json', 'tokens.json']);
    const sessions = readFileSync(join(data, 'lab', 'sessions.json'), 'utf8');
    expect(JSON.parse(sessions)).toMatchObject({ default: { endpoint: service.url, model_id: 'none' } });
    expect(sessions).not.toContain(KEY);
    expect(JSON.parse(readFileSync(join(data, 'lab', 'tokens.json'), 'utf8'))).toEqual({ default: KEY });
  });
});

test('an agent runs, stops, lists and resets code in a remote service', async () => {
  const agent = await startAgent({ home: laptop, cwd: laptop.project() });
  const attached = await agent.call('colab_attach', { endpoint: service.url, token: KEY });
  expect(attached.structured, attached.text).toMatchObject({ ok: true, health: { engine: 'none' } });
  const there = { interpreter: 'colab' };

  await agent.execute('x = 6 * 7', there);
  expect((await agent.execute('print(x)', there)).structured).toMatchObject({ outcome: 'ok', output: '42\n' });
  expect((await agent.execute('x')).structured).toMatchObject({ outcome: 'error' });
  expect((await agent.execute('1 / 0', there)).structured).toMatchObject({
    outcome: 'error',
    reason: { code: 'exception', message: 'The code raised ZeroDivisionError.' },
  });
  expect((await agent.execute('import time; time.sleep(60)', { ...there, timeout: 0.5 })).structured).toMatchObject({
    outcome: 'timeout',
    variables_survived: true,
  });

  const picture = `from IPython.display import Image, display\nimport base64\ndisplay(Image(base64.b64decode("${PNG}")))`;
  expect((await agent.execute(picture, there)).content).toMatchObject([{ type: 'image', mimeType: 'image/png' }]);

  const gate = createGate('agent');
  const { execution } = (await agent.execute(gate.code, { ...there, background: true })).structured;
  await gate.reached();
  expect((await agent.call('interrupt', { execution })).structured).toMatchObject({ outcome: 'cancelled' });
  expect((await agent.call('list_vars', there)).text).toContain('x');
  await agent.call('reset', there);
  expect((await agent.call('list_vars', there)).text).toBe('No variables defined');
  expect((await agent.call('colab_status')).structured).toMatchObject({
    model_id: 'none',
    sandbox: expect.any(String),
  });
  const refused = await agent.call('capture_acts', { prompt: 'a', layers: [0] });
  expect([refused.isError, refused.text]).toEqual([true, expect.stringContaining('has no model')]);
  await agent.close();
});
