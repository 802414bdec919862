import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { createLineWriter, readLines, writeLine } from '../src/json-lines.ts';

async function linesOf(pieces: Buffer[]): Promise<string[]> {
  const stream = new PassThrough();
  const lines: string[] = [];
  readLines(stream, (line) => lines.push(line));
  for (const piece of pieces) stream.write(piece);
  stream.end();
  await once(stream, 'end');
  return lines;
}

/** A small generator of numbers that is the same in every run. */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state % below;
  };
}

function cutAnywhere(data: Buffer, next: (below: number) => number): Buffer[] {
  const pieces: Buffer[] = [];
  for (let start = 0; start < data.length; ) {
    const end = start + 1 + next(next(2) === 0 ? 3 : data.length);
    pieces.push(data.subarray(start, end));
    start = end;
  }
  return pieces;
}

describe('lines from a stream', () => {
  const text = ['{"a":1}', '', '{"b":"żółw 🐢 漢字"}', 'x'.repeat(300), '"last"'];
  const data = Buffer.from(`${text.join('\n')}\n`);

  it('are the same for every cut into two pieces', async () => {
    for (let at = 0; at <= data.length; at++) {
      expect(await linesOf([data.subarray(0, at), data.subarray(at)])).toEqual(text);
    }
  });

  it('are the same for any cut into many pieces', async () => {
    for (let seed = 1; seed <= 200; seed++) {
      expect(await linesOf(cutAnywhere(data, numbers(seed)))).toEqual(text);
    }
  });

  it('are the same for one byte at a time', async () => {
    expect(await linesOf(Array.from(data, (byte) => Buffer.of(byte)))).toEqual(text);
  });

  it('do not include a last line that has no end', async () => {
    expect(await linesOf([Buffer.from('whole\nhal')])).toEqual(['whole']);
  });

  it('keep a carriage return, which JSON ignores', async () => {
    expect(await linesOf([Buffer.from('1\r\n2\n')])).toEqual(['1\r', '2']);
  });
});

describe('a written message', () => {
  it('is one line, whatever it holds', async () => {
    const stream = new PassThrough();
    const lines: string[] = [];
    readLines(stream, (line) => lines.push(line));
    const messages = [{ text: 'two\nlines\r\n' }, { text: '\u2028 \u0000 🐢' }, {}, [1, 2]];
    for (const message of messages) writeLine(stream, message);
    stream.end();
    await once(stream, 'end');
    expect(lines.map((line) => JSON.parse(line))).toEqual(messages);
  });
});

describe('messages with long strings', () => {
  const long = (text: string) => text.repeat(600_000 / text.length);

  function open() {
    const stream = new PassThrough();
    const received: unknown[] = [];
    readLines(stream, (line) => received.push(JSON.parse(line)));
    return { stream, received, writer: createLineWriter(stream) };
  }

  it('arrive whole and in the order in which they were written, with short ones between', async () => {
    const { stream, received, writer } = open();
    const messages = [
      { op: 'ack', seq: 1 },
      { op: 'execute', code: long('x🐢'), more: [1] },
      { op: 'interrupt' },
      { code: long('\n"'), stdin: long('é\ud83d') },
    ];
    writer.write(messages.slice(0, 2));
    writer.write(messages.slice(2, 3));
    writer.write(messages.slice(3));
    writer.end();
    await once(stream, 'end');
    expect(received).toEqual(messages);
  });

  it('let others be served between their pieces', async () => {
    const { stream, writer } = open();
    let turns = 0;
    const count = setInterval(() => {
      turns += 1;
    }, 0);
    writer.write([{ code: long('x').repeat(50) }]);
    writer.end();
    await once(stream, 'end');
    clearInterval(count);
    expect(turns).toBeGreaterThan(5);
  });

  it('to a reader who is gone are given up', async () => {
    const { stream, received, writer } = open();
    writer.write([{ code: long('x') }]);
    stream.destroy();
    writer.write([{ op: 'late' }]);
    await once(stream, 'close');
    expect(received).toEqual([]);
  });
});
