import { describe, expect, it } from 'vitest';
import type { ExitReport, InterpreterEvent } from '../../../src/interpreters/interpreter.ts';
import { parseMessage, toEvent } from '../../../src/interpreters/python/messages.ts';

const eventOf = (message: object): InterpreterEvent | undefined => {
  const parsed = parseMessage(JSON.stringify(message));
  return parsed && toEvent(parsed);
};

const done = {
  ev: 'done',
  seq: 9,
  id: '3',
  status: 'ok',
  cause: null,
  stopped: null,
  wall: 1,
  cpu: 2,
  peak: 3,
  ended: [],
};
const death = { exit: null, signal: 'SIGSEGV', oom: false, cpu: 4, peak: 5 };

function endingOf(different: object): ExitReport | undefined {
  const event = eventOf({ ...done, ...different });
  return event?.kind === 'done' ? event.ending : undefined;
}

describe('an output that would take long to parse', () => {
  const display = (value: string) =>
    `{"ev": "display", "data": {"application/json": ${value}}, "metadata": {}, "id": "7", "seq": 41}`;

  it.each([
    ['has very many values', `[${'0,'.repeat(2_000_000)}0]`, /more than 1000000 values/],
    ['is nested very deeply', `${'['.repeat(200_000)}${']'.repeat(200_000)}`, /nested more than 200 deep/],
  ])('is left out, and that is said, if it %s', (_, value, why) => {
    const parsed = parseMessage(display(value));
    expect(parsed).toMatchObject({ ev: 'stream', name: 'stderr', id: '7', seq: 41, text: expect.stringMatching(why) });
  });

  it('is whole if it is one long text, or a plot of many points', () => {
    const text = JSON.stringify('[{'.repeat(500_000));
    const points = JSON.stringify(Array.from({ length: 300_000 }, (_, index) => index));
    for (const value of [text, points])
      expect(parseMessage(display(value))).toMatchObject({
        ev: 'display',
        data: { 'application/json': JSON.parse(value) },
      });
  });
});

describe('a message that makes no sense', () => {
  it.each([
    ['is not JSON', '{"ev": "stream"'],
    ['is empty', ''],
    ['is no object', '17'],
    ['is null', 'null'],
    ['is a list', '[{"ev": "stream"}]'],
    ['has no kind', '{"seq": 1, "id": "1"}'],
    ['has an unknown kind', '{"ev": "explode", "seq": 1, "id": "1"}'],
    ['has the kind of every object', '{"ev": "constructor", "seq": 1, "id": "1"}'],
    ['lacks a field', '{"ev": "stream", "seq": 1, "id": "1", "name": "stdout"}'],
    ['has a field of the wrong type', '{"ev": "stream", "seq": "1", "id": "1", "name": "stdout", "text": "x"}'],
    ['names an unknown stream', '{"ev": "stream", "seq": 1, "id": "1", "name": "stdin", "text": "x"}'],
    [
      'has a traceback that is no list',
      '{"ev": "error", "seq": 1, "id": "1", "ename": "E", "evalue": "", "traceback": "x"}',
    ],
  ])('because it %s is dropped', (_, line) => {
    expect(parseMessage(line)).toBeUndefined();
  });

  it('of an ending is dropped as a whole', () => {
    expect(eventOf({ ...done, status: 'great' })).toBeUndefined();
    expect(eventOf({ ...done, stopped: { why: 'boredom', rung: 'interrupted' } })).toBeUndefined();
    expect(eventOf({ ...done, ended: [1, 2] })).toBeUndefined();
    expect(eventOf({ ...done, death: { signal: 'SIGSEGV' } })).toBeUndefined();
  });
});

describe('a message with an output', () => {
  it('is what was printed', () => {
    expect(eventOf({ ev: 'stream', seq: 1, id: '2', name: 'stderr', text: 'x' })).toEqual({
      kind: 'output',
      id: '2',
      seq: 1,
      output: { type: 'stream', name: 'stderr', text: 'x' },
    });
  });

  it('is a value, with a smaller picture where there is one', () => {
    const data = { 'text/plain': '1' };
    expect(eventOf({ ev: 'result', seq: 1, id: '2', data, metadata: {} })).toMatchObject({
      output: { type: 'result', data, metadata: {} },
    });
    expect(eventOf({ ev: 'result', seq: 1, id: '2', data, metadata: {}, preview: 'AA' })).toMatchObject({
      output: { preview: 'AA' },
    });
  });

  it('is something shown, with the id by which it is updated', () => {
    const shown = { ev: 'display', seq: 1, id: '2', data: {}, metadata: {}, display_id: 'd', update: true };
    expect(eventOf(shown)).toMatchObject({ output: { type: 'display', displayId: 'd', update: true } });
  });

  it('has no field that its message lacks', () => {
    const event = eventOf({ ev: 'display', seq: 1, id: '2', data: {} });
    expect(event).toStrictEqual({
      kind: 'output',
      id: '2',
      seq: 1,
      output: { type: 'display', data: {}, metadata: {} },
    });
  });

  it('is an error', () => {
    const error = { ename: 'E', evalue: 'v', traceback: ['t'] };
    expect(eventOf({ ev: 'error', seq: 1, id: '2', ...error })).toMatchObject({ output: { type: 'error', ...error } });
  });

  it('has none of the fields that nobody asked for', () => {
    const event = eventOf({ ev: 'stream', seq: 1, id: '2', name: 'stdout', text: 'x', isAdmin: true });
    expect(JSON.stringify(event)).not.toContain('isAdmin');
  });
});

describe('a message that asks something', () => {
  it('for a missing package is an event of its execution', () => {
    expect(eventOf({ ev: 'install', seq: 4, id: '2', name: 'yaml' })).toEqual({
      kind: 'missing-package',
      id: '2',
      seq: 4,
      module: 'yaml',
    });
  });

  it('or answers the server is no event of an execution', () => {
    expect(eventOf({ ev: 'variables', seq: 1, id: 'variables-1', variables: [] })).toBeUndefined();
    expect(eventOf({ ev: 'reset', seq: 1, id: 'reset-1', worker: 5, generation: 2 })).toBeUndefined();
    expect(eventOf({ ev: 'restarted', seq: 1, worker: 5, generation: 2, idle: true, death })).toBeUndefined();
  });
});

describe('the hello message', () => {
  const hello = {
    ev: 'hello',
    pid: 1,
    worker: 2,
    generation: 1,
    running: null,
    python: '3.12.1',
    executable: '/bin/python',
    ipython: null,
  };

  it('tells what the interpreter is', () => {
    expect(parseMessage(JSON.stringify(hello))).toEqual(hello);
    expect(parseMessage(JSON.stringify({ ...hello, running: '7', ipython: '9.0' }))).toMatchObject({ running: '7' });
  });

  it('is no event of an execution', () => {
    expect(eventOf(hello)).toBeUndefined();
  });
});

describe('the end of an execution', () => {
  it('is ok if it ended in good order', () => {
    expect(eventOf(done)).toStrictEqual({
      kind: 'done',
      id: '3',
      seq: 9,
      ending: { status: 'ok', wall: 1, cpu: 2, peak: 3, ended: [] },
    });
  });

  it('by an exception has its name', () => {
    expect(endingOf({ status: 'error', ename: 'ValueError' })).toMatchObject({
      status: 'error',
      errorName: 'ValueError',
    });
  });

  it('by sys.exit has its status', () => {
    expect(endingOf({ status: 'exit', code: 3 })).toMatchObject({ status: 'exit', exitCode: 3 });
  });

  it('by death has its cause, and the usage that the kernel counted', () => {
    const { status: _, cpu: __, peak: ___, ...rest } = done;
    const event = eventOf({ ...rest, death });
    expect(event).toMatchObject({
      ending: { status: 'death', death: { exit: null, signal: 'SIGSEGV', oom: false }, cpu: 4, peak: 5 },
    });
  });

  it('by death is a death even if the message also says that all is well', () => {
    expect(endingOf({ death })?.status).toBe('death');
  });

  it('tells that user code broke the control channel', () => {
    expect(endingOf({ death, cause: 'channel' })?.brokeChannel).toBe(true);
    expect(endingOf({ death })).not.toHaveProperty('brokeChannel');
  });

  it('tells why and how it was stopped', () => {
    const stopped = { why: 'timeout', rung: 'children-killed' };
    expect(endingOf({ stopped })?.stopped).toEqual(stopped);
    expect(endingOf({})).not.toHaveProperty('stopped');
  });

  it('names the processes that ended with it', () => {
    expect(endingOf({ ended: ['sleep 100'] })?.ended).toEqual(['sleep 100']);
  });
});

describe('the list of variables', () => {
  it('has only the fields that are known of each', () => {
    const variables = [
      { name: 'a', type: 'int', preview: '1' },
      { name: 'df', type: 'pandas.DataFrame', shape: [2, 3], bytes: 100 },
    ];
    const message = parseMessage(JSON.stringify({ ev: 'variables', seq: 1, id: 'v', variables }));
    expect(message?.ev === 'variables' && message.variables).toStrictEqual(variables);
  });
});
