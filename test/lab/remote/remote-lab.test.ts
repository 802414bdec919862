import { describe, expect, onTestFinished, test } from 'vitest';
import { CuvetteError } from '../../../src/errors.ts';
import type { Output } from '../../../src/interpreters/interpreter.ts';
import type { LabContext } from '../../../src/lab/core/lab.ts';
import { createDisconnectedCalls } from '../../../src/lab/remote/disconnected-calls.ts';
import { createRemoteLab, type RemoteOptions } from '../../../src/lab/remote/remote-lab.ts';
import { type CutProxy, openCutProxy } from '../cut-proxy.ts';
import { createFakeLab } from '../fake-lab.ts';
import { serveLab, serveOther, TOKEN } from '../served.ts';

const LOST = 'The connection to the lab was lost; trying again.';
const KEEPS = ['capture_acts', { prompt: 'the', layers: [0] }] as const;
const READS = ['steer', { prompt: 'the', layer: 0, direction_id: 'a', alpha: 1 }] as const;

const printing = (text: string): Output => ({ type: 'stream', name: 'stdout', text });

async function open() {
  const fake = createFakeLab();
  const { url } = await serveLab(fake.lab);
  const proxy = await openCutProxy(url);
  return { ...fake, url, proxy, ...client(proxy.url) };
}

function client(endpoint: string, options: Partial<RemoteOptions> = {}) {
  const remote = createRemoteLab({ endpoint, token: TOKEN, waits: [0, 0, 0, 0], ...options });
  onTestFinished(() => remote.close());
  const told: string[] = [];
  const printed: unknown[] = [];
  const waiting = new Map<string, () => void>();
  const stop = new AbortController();
  const context: LabContext = {
    signal: stop.signal,
    progress(message) {
      told.push(message);
      waiting.get(message)?.();
    },
    output: (output) => printed.push(output),
  };
  const hears = (message: string) =>
    new Promise<void>((resolve) => {
      waiting.set(message, resolve);
      if (told.includes(message)) resolve();
    });
  return { remote, told, printed, stop, context, hears };
}

/** A call that runs in the lab, and has told of its first step. */
async function begin([name, args]: typeof KEEPS | typeof READS = KEEPS) {
  const opened = await open();
  const call = opened.remote.call(name, args, opened.context);
  const there = await opened.started(0);
  there.context.progress('one');
  await opened.hears('one');
  return { ...opened, call, there };
}

/** Cuts the connection, and all that follow it, until the client has given up. */
async function loseForGood(proxy: CutProxy, call: Promise<unknown>): Promise<unknown> {
  proxy.refuse(Number.POSITIVE_INFINITY);
  proxy.cut();
  const error = await call.catch((reason: unknown) => reason);
  proxy.refuse(0);
  return error;
}

describe('a call to a remote lab whose connection is cut', () => {
  test('goes on, and tells each event once', async () => {
    const { remote, proxy, calls, started, told, printed, context, hears } = await open();
    const call = remote.call(...KEEPS, context);
    const there = await started(0);
    there.context.progress('one');
    there.context.output?.(printing('a'));
    await hears('one');
    proxy.cut();
    await hears(LOST);
    there.context.progress('two');
    there.context.output?.(printing('b'));
    await hears('two');
    there.answer({ kept: 1 });
    expect(await call).toEqual({ kept: 1 });
    expect(told).toEqual(['one', LOST, 'two']);
    expect(printed).toEqual([printing('a'), printing('b')]);
    expect(calls).toHaveLength(1);
  });

  test('gets the answer that was given while it was away', async () => {
    const { proxy, calls, told, call, there } = await begin();
    proxy.refuse(3);
    proxy.cut();
    there.answer({ kept: 1 });
    expect(await call).toEqual({ kept: 1 });
    expect(calls).toHaveLength(1);
    expect(told).toEqual(['one', LOST]);
  });

  test('in the middle of its answer gets it whole', async () => {
    const { proxy, calls, hears, call, there } = await begin();
    proxy.cutAfter(50_000);
    const answer = { text: 'é'.repeat(200_000) };
    there.answer(answer);
    expect(await call).toEqual(answer);
    await hears(LOST);
    expect(calls).toHaveLength(1);
  });

  test('without a word is taken for cut, and goes on', async () => {
    const { proxy, calls, started } = await open();
    // Long enough for the call to arrive on a busy machine: one that has never been heard of is not joined.
    const { remote, context, hears, told } = client(proxy.url, { silence: 5000 });
    const call = remote.call(...KEEPS, context);
    const there = await started(0);
    there.context.progress('one');
    await hears('one');
    proxy.freeze();
    await hears(LOST);
    there.answer({ kept: 1 });
    expect(await call).toEqual({ kept: 1 });
    expect(told.slice(0, 2)).toEqual(['one', LOST]);
    expect(calls).toHaveLength(1);
  });

  test('gets the error that it ended with', async () => {
    const { proxy, calls, call, there } = await begin();
    proxy.cut();
    there.fail(new Error('no such thing'));
    await expect(call).rejects.toMatchObject({ code: 'internal', message: 'no such thing' });
    expect(calls).toHaveLength(1);
  });

  test('may be cut more often than there are tries, while something comes in between', async () => {
    const { remote, proxy, calls, started, context, told, hears } = await open();
    const call = remote.call(...KEEPS, context);
    const there = await started(0);
    for (let i = 0; i < 7; i++) {
      there.context.progress(`step ${i}`);
      await hears(`step ${i}`);
      proxy.cut();
    }
    there.answer({ kept: 1 });
    expect(await call).toEqual({ kept: 1 });
    expect(told.filter((line) => line === LOST)).toHaveLength(7);
    expect(calls).toHaveLength(1);
  });

  test('is not given up for what a tunnel answers in place of the lab', async () => {
    const { proxy, url, calls, call, there } = await begin();
    let asked = 0;
    const page = await serveOther((_, response) => {
      asked += 1;
      response.writeHead(asked === 1 ? 502 : 404, { 'content-type': 'text/html', connection: 'close' }).end('<html>');
      if (asked === 2) proxy.lead(url);
    });
    proxy.lead(page.url);
    proxy.cut();
    there.answer({ kept: 1 });
    expect(await call).toEqual({ kept: 1 });
    expect(asked).toBe(2);
    expect(calls).toHaveLength(1);
  });
});

describe('a call to a remote lab that cannot be joined', () => {
  test('says what to do, and the same call made again continues it', async () => {
    const { remote, proxy, calls, started, context, hears, call, there } = await begin();
    const before = proxy.connections();
    expect(await loseForGood(proxy, call)).toMatchObject({
      code: 'lab_unreachable',
      message: expect.stringMatching(/cuvette lab serve.*tunnel.*address has changed.*does not run it twice/),
    });
    expect(proxy.connections() - before).toBe(4);
    const again = remote.call(...KEEPS, context);
    await hears('one');
    there.answer({ kept: 1 });
    expect(await again).toEqual({ kept: 1 });
    expect(calls).toHaveLength(1);
    const third = remote.call(...KEEPS, context);
    (await started(1)).answer({ kept: 2 });
    expect(await third).toEqual({ kept: 2 });
  });

  test('is continued at another address of the same model, and is another with other arguments', async () => {
    const { lab, calls, started } = createFakeLab();
    const { url } = await serveLab(lab);
    const [old, moved] = [await openCutProxy(url), await openCutProxy(url)];
    const disconnected = createDisconnectedCalls();
    const [first, second] = [client(old.url, { disconnected }), client(moved.url, { disconnected })];
    const weights = 'fake'.padEnd(64, '0');
    const call = first.remote.call(...KEEPS, { ...first.context, weights });
    const there = await started(0);
    await loseForGood(old, call);
    const other = second.remote.call(KEEPS[0], { prompt: 'a', layers: [0] }, { ...second.context, weights });
    (await started(1)).answer({ kept: 'other' });
    expect(await other).toEqual({ kept: 'other' });
    const again = second.remote.call(...KEEPS, { ...second.context, weights });
    there.answer({ kept: 1 });
    expect(await again).toEqual({ kept: 1 });
    expect(calls).toHaveLength(2);
  });

  test('is sent afresh where it is not known any more', async () => {
    const { remote, proxy, started, context } = await open();
    const call = remote.call(...KEEPS, context);
    await started(0);
    await loseForGood(proxy, call);
    const restarted = createFakeLab();
    proxy.lead((await serveLab(restarted.lab)).url);
    const again = remote.call(...KEEPS, context);
    (await restarted.started(0)).answer({ kept: 2 });
    expect(await again).toEqual({ kept: 2 });
  });

  test('because nobody is there is not said to run', async () => {
    const { url, server } = await serveOther(() => {});
    await new Promise((resolve) => server.close(resolve));
    const { remote, context, told } = client(url);
    await expect(remote.call(...KEEPS, context)).rejects.toMatchObject({
      code: 'lab_unreachable',
      message: expect.stringMatching(/^(?!.*twice).*ECONNREFUSED.*cuvette lab serve/),
    });
    expect(told).toEqual([LOST]);
  });
});

describe('a call that never came to the remote lab', () => {
  test('is sent again, though its connection ended as it was sent', async () => {
    const { remote, proxy, calls, started, context, told } = await open();
    await remote.call('colab_status', {}, context);
    proxy.swallow();
    const call = remote.call(...KEEPS, context);
    (await started(0)).answer({ kept: 1 });
    expect(await call).toEqual({ kept: 1 });
    expect(calls).toHaveLength(1);
    expect(told).toEqual([LOST]);
  });

  test('is not sent again to another lab, which the first may have become', async () => {
    const { remote, proxy, calls, context } = await open();
    await remote.call('colab_status', {}, context);
    const other = createFakeLab();
    proxy.lead((await serveLab(other.lab)).url);
    proxy.cut();
    proxy.swallow();
    await expect(remote.call(...KEEPS, context)).rejects.toMatchObject({
      code: 'lab_unreachable',
      message: expect.stringContaining('restarted'),
    });
    expect([calls.length, other.calls.length]).toEqual([0, 0]);
  });
});

describe('a call that the remote lab has stopped because nobody listened', () => {
  async function stopped([name, args]: typeof KEEPS | typeof READS) {
    const fake = createFakeLab();
    const { url } = await serveLab(fake.lab, { grace: 1 });
    const proxy = await openCutProxy(url);
    const opened = client(proxy.url);
    await opened.remote.call('colab_status', {}, opened.context);
    const call = opened.remote.call(name, args, opened.context);
    const { aborted } = await fake.started(0);
    await loseForGood(proxy, call);
    await aborted;
    return { ...fake, ...opened, again: () => opened.remote.call(name, args, opened.context) };
  }

  test('does not run again without a word if it keeps something', async () => {
    const { again, calls, started } = await stopped(KEEPS);
    await expect(again()).rejects.toMatchObject({
      code: 'call_over',
      message: expect.stringMatching(/has run this call.*nobody listens.*call again to run it anew/),
    });
    expect(calls).toHaveLength(1);
    const third = again();
    (await started(1)).answer({ kept: 2 });
    expect(await third).toEqual({ kept: 2 });
  });

  test('runs again if it only reads', async () => {
    const { again, started } = await stopped(READS);
    const second = again();
    (await started(1)).answer({ delta: 1 });
    expect(await second).toEqual({ delta: 1 });
  });
});

test('a remote lab that takes requests and says nothing is taken for one that is away', async () => {
  let asked = 0;
  const { url } = await serveOther(() => {
    asked += 1;
  });
  const { remote, context, told } = client(url, { silence: 100, waits: [0] });
  await expect(remote.call(...KEEPS, context)).rejects.toMatchObject({
    code: 'lab_unreachable',
    message: expect.stringContaining('nothing came from it any more'),
  });
  expect(told).toEqual([LOST]);
  expect(asked).toBe(2);
});

describe('a remote lab that was restarted', () => {
  async function restart(asked: typeof KEEPS | typeof READS) {
    const begun = await begin(asked);
    const restarted = createFakeLab();
    begun.proxy.lead((await serveLab(restarted.lab)).url);
    begun.proxy.cut();
    return { ...begun, restarted };
  }

  test('does not run again what keeps something, until it is asked to', async () => {
    const { remote, call, restarted, context } = await restart(KEEPS);
    await expect(call).rejects.toMatchObject({
      code: 'lab_unreachable',
      message: expect.stringMatching(/restarted.*on disk.*[Cc]all again/),
    });
    expect(restarted.calls).toHaveLength(0);
    const again = remote.call(...KEEPS, context);
    (await restarted.started(0)).answer({ kept: 2 });
    expect(await again).toEqual({ kept: 2 });
  });

  test('runs again what only reads', async () => {
    const { call, restarted, told } = await restart(READS);
    const there = await restarted.started(0);
    there.context.progress('anew');
    there.answer({ delta: 1 });
    expect(await call).toEqual({ delta: 1 });
    expect(told).toEqual(['one', LOST, 'anew']);
  });
});

describe('giving up a call to a remote lab', () => {
  test('stops the call there at once', async () => {
    const { remote, started, stop, context } = await open();
    const call = remote.call(...KEEPS, context);
    const { aborted } = await started(0);
    stop.abort();
    await expect(call).rejects.toThrow(/abort/i);
    await aborted;
  });

  test('between two connections stops the call there, too', async () => {
    const { remote, proxy, started, stop, context, hears } = await open();
    const call = remote.call(...KEEPS, {
      ...context,
      progress(message) {
        context.progress(message);
        if (message === LOST) stop.abort();
      },
    });
    const there = await started(0);
    there.context.progress('one');
    await hears('one');
    proxy.cut();
    await expect(call).rejects.toThrow(/abort/i);
    await there.aborted;
  });

  test('and asking the same again runs it anew', async () => {
    const { remote, started, calls, stop, context } = await open();
    const call = remote.call(...KEEPS, context);
    const there = await started(0);
    stop.abort();
    await expect(call).rejects.toThrow(/abort/i);
    await there.aborted;
    const again = remote.call(...KEEPS, { ...context, signal: new AbortController().signal });
    (await started(1)).answer({ kept: 2 });
    expect(await again).toEqual({ kept: 2 });
    expect(calls).toHaveLength(2);
  });
});

test.each([
  'interpreter_failed',
  'unknown_interpreter',
  'runtime_missing',
  'python_missing',
  'unknown_capture',
] as const)('an error of the remote lab is told as it is: %s', async (code) => {
  const { remote, started, context } = await open();
  const call = remote.call('run_code', { code: 'n += 1', run: 'a' }, context);
  (await started(0)).fail(new CuvetteError(code, 'What to do.'));
  await expect(call).rejects.toMatchObject({ code, message: 'What to do.' });
});

test.each(['http://', 'https://:8787', 'http://[::1'])(
  'what is no address of a lab is refused as such: %s',
  (endpoint) => {
    expect(() => createRemoteLab({ endpoint, token: TOKEN })).toThrow(
      expect.objectContaining({ code: 'invalid_input', message: expect.stringContaining('https://host:8787') }),
    );
  },
);

test('two clients of a remote lab at once have each their own call, whatever they ask', async () => {
  const { lab, started, calls } = createFakeLab();
  const { url } = await serveLab(lab);
  const [one, two] = [client(url), client(url)];
  const first = one.remote.call(...KEEPS, one.context);
  const a = await started(0);
  const second = two.remote.call(...KEEPS, two.context);
  const b = await started(1);
  b.context.progress('for two');
  b.answer({ kept: 2 });
  expect(await second).toEqual({ kept: 2 });
  a.answer({ kept: 1 });
  expect(await first).toEqual({ kept: 1 });
  expect([one.told, two.told]).toEqual([[], ['for two']]);
  expect(calls).toHaveLength(2);
});

test('a question to a remote lab by GET that is cut is asked again', async () => {
  const { remote, proxy, context, started } = await open();
  proxy.refuse(2);
  const call = remote.call('list_probes', {}, context);
  (await started(0)).answer({ probes: [] });
  expect(await call).toEqual({ probes: [] });
});
