import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MOST_JSON_AT_ONCE, readJsonBody } from '../src/json-body.ts';
import { DEEPEST_JSON, MOST_JSON_VALUES } from '../src/json-guard.ts';

const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);
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
        expect((await readJsonBody(inPieces(pieces))).parse()).toEqual(JSON.parse(bytes.toString('utf8')));
      }),
    );
  });

  it('has its long strings parsed as they arrive, keys and escape sequences included, however it is cut', async () => {
    const part = fc.constantFrom('"', '\\', '\n', 'é', '🐢', '\ud83d', '\u0001', 'abcdefgh');
    const long = fc.array(part, { minLength: 20, maxLength: 60 }).map((parts) => parts.join(''));
    await fc.assert(
      fc.asyncProperty(fc.array(long, { minLength: 2 }), fc.integer({ min: 1, max: 11 }), async (strings, length) => {
        const value = { list: strings, [strings.join('')]: { code: strings[0], less: 1, nothing: null } };
        const bytes = Buffer.from(JSON.stringify(value).replaceAll('é', '\\u00e9'));
        const pieces = Array.from({ length: Math.ceil(bytes.length / length) }, (_, at) =>
          bytes.subarray(at * length, (at + 1) * length),
        );
        expect((await readJsonBody(inPieces(pieces))).parse()).toEqual(value);
      }),
    );
  });

  it.each([
    ['a control character', '\n'],
    ['an unknown escape sequence', '\\q'],
    ['a broken escape sequence', '\\u12x4'],
  ])('with %s within a long string is no JSON', async (_, wrong) => {
    const body = await readJsonBody(inPieces(['{"code":"', 'abc', `d${wrong}e`, 'f', '"}']));
    expect(() => body.parse()).toThrow(SyntaxError);
  });

  it('may have a long string, and not as much beside such strings', async () => {
    const piece = 'x'.repeat(MOST_JSON_AT_ONCE / 4);
    const long = await readJsonBody(inPieces(['{"code":"', ...Array<string>(5).fill(piece), '"}']));
    expect(long.parse()).toEqual({ code: piece.repeat(5) });
    const many = inPieces(['["', ...Array<string>(5).fill(`${piece}","`), '"]']);
    await expect(readJsonBody(many)).rejects.toMatchObject({
      code: 'too_large',
      message: expect.stringContaining('beside its long strings'),
    });
  });

  it('says whether there was nothing but white space in it', async () => {
    expect((await readJsonBody(inPieces([' ', '\n']))).isBlank).toBe(true);
    expect((await readJsonBody(inPieces(['{}']))).isBlank).toBe(false);
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
