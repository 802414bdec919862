import { PassThrough } from 'node:stream';
import { finished } from 'node:stream/promises';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type DriverMessage, parseMessage, toEvent } from '../../src/interpreters/python/messages.ts';
import { readLines } from '../../src/json-lines.ts';

const shown = { seq: 1, id: '1' };
const death = { exit: null, signal: 'SIGSEGV', oom: false, cpu: 4, peak: 5 };
const PROPER: Record<string, unknown>[] = [
  { ev: 'hello', pid: 1, worker: 2, generation: 3, running: null, python: '3.9.1', executable: '/py', ipython: null },
  {
    ...{ ev: 'hello', pid: 1, worker: 2, generation: 3, running: null, python: '3.9.1', executable: '/py' },
    ...{ ipython: null, asks: ['inspect'] },
  },
  { ev: 'stream', ...shown, name: 'stdout', text: 'printed' },
  { ev: 'display', ...shown, data: { 'text/plain': 'x' }, metadata: {}, preview: 'x', display_id: 'd', update: true },
  { ev: 'result', ...shown, data: { 'text/plain': '1' }, metadata: {}, preview: '1' },
  { ev: 'error', ...shown, ename: 'E', evalue: 'v', traceback: ['a', 'b'] },
  { ev: 'install', ...shown, name: 'numpy' },
  { ev: 'built', ...shown },
  { ev: 'done', ...shown, status: 'ok', cause: null, stopped: null, wall: 1, cpu: 2, peak: 3, ended: [] },
  {
    ...{ ev: 'done', ...shown, death, cause: 'channel', stopped: { why: 'timeout', rung: 'killed' }, wall: 1 },
    ...{ ended: ['sleep 5'], hit: ['oom', 'disk-quota'], steps: 2, code: 3, signal: 'SIGKILL', oom: true, ename: 'E' },
  },
  { ev: 'variables', ...shown, variables: [{ name: 'x', type: 'int', shape: [1], length: 3 }] },
  { ev: 'answered', ...shown, answer: { kind: 'text' } },
  { ev: 'answered', ...shown, problem: { code: 'missing', message: 'There is none.' } },
  { ev: 'reset', ...shown, worker: 4, generation: 5 },
  { ev: 'restarted', seq: 1, worker: 4, generation: 5, idle: true, death },
];

const kindOf = (value: unknown): string => (value === null ? 'null' : Array.isArray(value) ? 'list' : typeof value);

/** What each field of each message may be, by what stands in the proper ones. */
const KINDS = new Map<string, Set<string>>();
for (const one of PROPER) {
  for (const [name, value] of Object.entries(one)) {
    const key = `${one.ev} ${name}`;
    KINDS.set(key, (KINDS.get(key) ?? new Set()).add(kindOf(value)));
  }
}
KINDS.get('hello running')?.add('string');
KINDS.get('hello ipython')?.add('string');
// Whoever asked parses the answer.
for (const kind of ['string', 'number', 'boolean', 'null', 'list']) KINDS.get('answered answer')?.add(kind);

const REQUIRED: Record<string, string[]> = {
  hello: ['pid', 'worker', 'generation', 'running', 'python', 'executable', 'ipython'],
  stream: ['seq', 'id', 'name', 'text'],
  display: ['seq', 'id', 'data', 'metadata'],
  result: ['seq', 'id', 'data', 'metadata'],
  error: ['seq', 'id', 'ename', 'evalue', 'traceback'],
  install: ['seq', 'id', 'name'],
  built: ['seq', 'id'],
  done: ['seq', 'id', 'cause', 'stopped', 'wall', 'ended'],
  variables: ['seq', 'id', 'variables'],
  answered: ['seq', 'id'],
  reset: ['seq', 'id', 'worker', 'generation'],
  restarted: ['seq', 'worker', 'generation', 'idle', 'death'],
};

/** By other means than the product's: that a message that was taken is what it must be. */
function expectProper(message: DriverMessage): void {
  const fields: [string, unknown][] = Object.entries(message);
  for (const name of REQUIRED[message.ev] ?? ['no such kind']) must(message, name in message, `has ${name}`);
  for (const [name, value] of fields) {
    const isKnown = value === undefined || KINDS.get(`${message.ev} ${name}`)?.has(kindOf(value));
    must(message, isKnown === true, `has a ${name} of a kind that it may be`);
  }
  if (message.ev === 'stream') must(message, ['stdout', 'stderr'].includes(message.name), 'names a stream');
  if (message.ev === 'error') must(message, message.traceback.every(isText), 'has a traceback of lines');
  if (message.ev !== 'done') return;
  must(message, ['ok', 'error', 'exit', 'signal', undefined].includes(message.status), 'has a status that there is');
  must(message, message.ended.every(isText), 'ended commands');
  if (!message.stopped) return;
  const whys = ['timeout', 'cancelled', 'output-limit', 'disk-quota', 'too-many-processes'];
  must(message, whys.includes(message.stopped.why), 'was stopped for a reason that there is');
  must(message, ['interrupted', 'children-killed', 'killed'].includes(message.stopped.rung), 'was stopped by a rung');
}

/** An event that is told of has an execution and a number to acknowledge, or it would be waited for without end. */
function expectEvent(message: DriverMessage): void {
  const event = toEvent(message);
  if (!event)
    return must(message, ['hello', 'variables', 'answered', 'reset', 'restarted'].includes(message.ev), 'is an event');
  must(message, isText(event.id) && typeof event.seq === 'number', 'has an id and a seq');
  if (event.kind !== 'done') return;
  const { status, wall, cpu, peak } = event.ending;
  must(message, ['ok', 'error', 'exit', 'signal', 'death'].includes(status), 'ends in a way that there is');
  must(message, typeof wall === 'number' && typeof cpu === 'number' && typeof peak === 'number', 'has its costs');
}

const isText = (value: unknown) => typeof value === 'string';

/** An expect would take most of the time: there are hundreds of thousands of these. */
function must(message: DriverMessage, holds: boolean, what: string): void {
  if (!holds) throw new Error(`It must hold that it ${what}: ${JSON.stringify(message)}`);
}

function expectSense(line: string): boolean {
  const message = parseMessage(line);
  if (!message) return false;
  expectProper(message);
  expectEvent(message);
  return true;
}

const anything = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }),
  fc.constantFrom('stdout', 'ok', 'death', 'timeout', 'killed', '__proto__', 'constructor', -1, 1e308, 0.5),
);
const proper = fc.constantFrom(...PROPER);
const names = [...new Set(PROPER.flatMap((one) => Object.keys(one))), '__proto__', 'constructor', 'toString'];
const change = fc.record({ name: fc.constantFrom(...names), value: fc.option(anything, { nil: undefined }) });

describe('a line from a driver', () => {
  it.each(PROPER)('that is proper is taken: $ev', (message) => {
    expect(expectSense(JSON.stringify(message))).toBe(true);
  });

  it('that is proper with a few fields changed or gone is taken only if it still makes sense', () => {
    fc.assert(
      fc.property(proper, fc.array(change, { maxLength: 3 }), (message, changes) => {
        const changed = { ...message, ...Object.fromEntries(changes.map(({ name, value }) => [name, value])) };
        expectSense(JSON.stringify(changed));
      }),
      { numRuns: 20_000 },
    );
  });

  it('that has one field of another kind is dropped', () => {
    fc.assert(
      fc.property(proper, fc.nat(), fc.jsonValue({ maxDepth: 1 }), (message, which, value) => {
        const fields = Object.keys(message).filter((name) => name !== 'ev');
        const name = fields[which % fields.length] ?? '';
        fc.pre(!KINDS.get(`${message.ev} ${name}`)?.has(kindOf(value)));
        // What may be absent may not be null instead.
        expect(parseMessage(JSON.stringify({ ...message, [name]: value }))).toBeUndefined();
      }),
      { numRuns: 5000 },
    );
  });

  it('that lacks what it must have is dropped', () => {
    for (const message of PROPER) {
      for (const name of REQUIRED[String(message.ev)]?.filter((one) => one !== 'metadata') ?? []) {
        const { [name]: _, ...rest } = message;
        expect(parseMessage(JSON.stringify(rest)), `${message.ev} without ${name}`).toBeUndefined();
      }
    }
  });

  it('that is any JSON never throws', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 5 }), (line) => void expectSense(line)),
      { numRuns: 5000 },
    );
  });

  it('that is any text, or deep without end, never throws', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (line) => void expectSense(line)),
      { numRuns: 5000 },
    );
    for (const opening of ['[', '{"a":', '{"ev":"display","seq":1,"id":"1","data":{"a":']) {
      expect(expectSense(opening.repeat(100_000))).toBe(false);
      const closing = opening === '[' ? ']' : '}';
      expect(expectSense(`${opening.repeat(5000)}1${closing.repeat(5000)}`)).toBe(false);
    }
  });

  it('that was damaged on its way never throws', () => {
    fc.assert(
      fc.property(proper, fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 5 }), (message, bytes) => {
        const line = Buffer.from(JSON.stringify(message));
        for (const [at, byte] of bytes) line[at % line.length] = byte;
        expectSense(line.toString());
      }),
      { numRuns: 10_000 },
    );
  });
});

describe('a stream from a driver', () => {
  it('gives every proper line, in order, whatever stands between them and however it is cut', async () => {
    const junk = fc.oneof(
      fc.json({ maxDepth: 2 }).filter((line) => !parseMessage(line)),
      fc.string({ unit: 'binary', maxLength: 50 }).filter((line) => !line.includes('\n') && !parseMessage(line)),
      fc.constantFrom('', '\r', '{', 'null', '\u2028'),
    );
    const line = fc.oneof(
      proper.map((message) => ({ line: JSON.stringify(message), message })),
      junk.map((line) => ({ line, message: undefined })),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(line, { maxLength: 20 }),
        fc.array(fc.nat(), { maxLength: 20 }),
        async (lines, cuts) => {
          const data = Buffer.from(lines.map((one) => `${one.line}\n`).join(''));
          const taken: (DriverMessage | undefined)[] = [];
          const stream = new PassThrough();
          readLines(stream, (text) => taken.push(parseMessage(text)));
          const edges = [0, ...cuts.map((at) => at % (data.length + 1)).sort((a, b) => a - b), data.length];
          for (const [index, end] of edges.slice(1).entries()) stream.write(data.subarray(edges[index], end));
          stream.end();
          await finished(stream);
          expect(taken.filter(Boolean)).toEqual(lines.flatMap(({ message }) => (message ? [message] : [])));
        },
      ),
      { numRuns: 300 },
    );
  });
});
