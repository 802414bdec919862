import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DEEPEST_JSON, MOST_JSON_VALUES, parseGuarded, readJsonBody } from '../src/json-guard.ts';

const nested = (depth: number, inner = '') => '['.repeat(depth) + inner + ']'.repeat(depth);
const tooDeep = { code: 'invalid_input', message: expect.stringContaining(`more than ${DEEPEST_JSON} deep`) };
const tooMany = { code: 'too_large', message: expect.stringContaining(`more than ${MOST_JSON_VALUES} values`) };

function inPieces(pieces: (string | Uint8Array)[]): Request {
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const piece of pieces) controller.enqueue(typeof piece === 'string' ? encoder.encode(piece) : piece);
      controller.close();
    },
  });
  return new Request('http://localhost/', { method: 'POST', body, duplex: 'half' });
}

describe('JSON that is about to be parsed', () => {
  it.each([
    ['an array', nested],
    ['an object', (depth: number) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`],
    ['both', (depth: number) => nested(depth - 1, '{}')],
  ])('is refused when %s is nested too deeply', (_, make) => {
    expect(parseGuarded(make(DEEPEST_JSON))).toBeInstanceOf(Object);
    expect(() => parseGuarded(make(DEEPEST_JSON + 1))).toThrow(expect.objectContaining(tooDeep));
  });

  it.each([
    ['numbers', '1'],
    ['empty arrays', '[]'],
    ['pairs', '{"a":1}'],
  ])('is refused when it has too many values: %s', (_, item) => {
    const list = (length: number) => `[${Array(length).fill(item).join(',')}]`;
    expect(parseGuarded(list(60_000))).toHaveLength(60_000);
    expect(() => parseGuarded(list(MOST_JSON_VALUES + 1))).toThrow(expect.objectContaining(tooMany));
  });

  it('may have anything in a string', () => {
    const text = JSON.stringify({ code: `${'[{,:'.repeat(MOST_JSON_VALUES)}\\"${'\\'.repeat(7)}[` });
    expect(parseGuarded(text)).toEqual(JSON.parse(text));
  });

  it('is counted outside of strings only, wherever quotes and backslashes stand', () => {
    const quoted = fc.array(fc.constantFrom('"', '\\', '[', '{', 'a', 'é', '\n'), { maxLength: 30 });
    fc.assert(
      fc.property(fc.array(quoted), (strings) => {
        const value = strings.map((parts) => parts.join(''));
        expect(parseGuarded(JSON.stringify(value))).toEqual(value);
        const deep = `[${value.map((one) => JSON.stringify(one)).join(',')}${value.length > 0 ? ',' : ''}${nested(DEEPEST_JSON)}]`;
        expect(() => parseGuarded(deep)).toThrow(expect.objectContaining(tooDeep));
      }),
    );
  });

  it('that is no JSON is left to the parser', () => {
    expect(() => parseGuarded(']]]]"')).toThrow(SyntaxError);
  });
});

describe('the body of a request', () => {
  it('is read whole, however it is cut into pieces', async () => {
    const text = fc.array(fc.constantFrom('"', '\\', '[', 'é', '漢', '🐢', ' '), { maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(text, fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }), async (parts, lengths) => {
        const bytes = Buffer.from(JSON.stringify({ code: parts.join(''), more: [nested(3)] }));
        const pieces: Uint8Array[] = [];
        for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
          const length = lengths[turn % lengths.length] ?? 1;
          pieces.push(bytes.subarray(at, at + length));
          at += length;
        }
        expect(await readJsonBody(inPieces(pieces))).toBe(bytes.toString('utf8'));
      }),
    );
  });

  it('is refused for what its pieces are together', async () => {
    await expect(readJsonBody(inPieces(Array(DEEPEST_JSON + 1).fill('[')))).rejects.toMatchObject(tooDeep);
    const many = ['[', ...Array(30).fill('1,'.repeat(10_000)), '1]'];
    await expect(readJsonBody(inPieces(many))).rejects.toMatchObject(tooMany);
  });

  it('that is refused is read to its end, so that its sender hears of it', async () => {
    let left = 5;
    const body = new ReadableStream({
      pull(controller) {
        left -= 1;
        controller.enqueue(Buffer.alloc(1000, '['));
        if (left === 0) controller.close();
      },
    });
    const request = new Request('http://localhost/', { method: 'POST', body, duplex: 'half' });
    await expect(readJsonBody(request)).rejects.toMatchObject(tooDeep);
    expect(left).toBe(0);
  });

  it('that breaks off is the fault of its sender', async () => {
    const body = new ReadableStream({ pull: (controller) => controller.error(new Error('gone')) });
    const request = new Request('http://localhost/', { method: 'POST', body, duplex: 'half' });
    await expect(readJsonBody(request)).rejects.toMatchObject({ code: 'invalid_input' });
  });
});
