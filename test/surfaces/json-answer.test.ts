import { describe, expect, it } from 'vitest';
import { CuvetteError } from '../../src/errors.ts';
import { escapeText, joinTexts, type LongText } from '../../src/sessions/long-text.ts';
import { type JsonBody, jsonBody, keepAliveJson } from '../../src/surfaces/json-answer.ts';

const TEXT = 'a "line"\n🎉\u0000\u2028é\\';

function longText(...pieces: string[]): LongText {
  return {
    async *escaped() {
      for (const piece of pieces) yield Buffer.from(escapeText(piece));
    },
    endsLine: false,
  };
}

function optionsFor(silence: number, gone = new AbortController().signal) {
  return { gone, silence, onLate: (error: unknown) => ({ stderr: String(error) }) };
}

function later(): { work: Promise<JsonBody>; resolve(body: JsonBody): void; reject(error: Error): void } {
  let resolve: (body: JsonBody) => void = () => {};
  let reject: (error: Error) => void = () => {};
  const work = new Promise<JsonBody>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { work, resolve, reject };
}

describe('a JSON answer that is ready before the keep-alive interval', () => {
  it('has no white space, and its length is known', async () => {
    const response = await keepAliveJson(Promise.resolve(jsonBody({ a: TEXT })), optionsFor(60_000));
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/json']);
    expect(await response.text()).toBe(JSON.stringify({ a: TEXT }));
  });

  it('is sent in pieces where texts are long, and is the same JSON', async () => {
    const source = {
      size: 1,
      isReleased: false,
      release() {
        this.isReleased = true;
      },
    };
    const long = longText(TEXT, TEXT);
    const value = { a: long, b: [1], left: undefined, run: { c: joinTexts(long, 'x'), d: joinTexts('y\n', long) } };
    const response = await keepAliveJson(Promise.resolve(jsonBody(value, source)), optionsFor(60_000));
    expect(source.isReleased).toBe(false);
    const twice = TEXT + TEXT;
    expect(await response.json()).toEqual({ a: twice, b: [1], run: { c: `${twice}x`, d: `y\n${twice}` } });
    expect(source.isReleased).toBe(true);
  });

  it('rejects with the error of the work', async () => {
    const failed = Promise.reject(new CuvetteError('rate_limited', 'Wait.'));
    await expect(keepAliveJson(failed, optionsFor(60_000))).rejects.toThrow('Wait.');
  });
});

describe('a JSON answer that takes longer than the keep-alive interval', () => {
  it('begins with white space at every interval, and is valid JSON in the end', async () => {
    const { work, resolve } = later();
    const response = await keepAliveJson(work, optionsFor(1));
    const reader = response.body?.getReader();
    let text = '';
    for (let count = 0; count < 3; count += 1) text += Buffer.from((await reader?.read())?.value ?? []).toString();
    expect(text).toBe('\n\n\n');
    resolve(jsonBody({ a: TEXT }));
    for (let next = await reader?.read(); next && !next.done; next = await reader?.read())
      text += Buffer.from(next.value).toString();
    expect(text.trimStart()).toBe(JSON.stringify({ a: TEXT }));
    expect(JSON.parse(text)).toEqual({ a: TEXT });
  });

  it('reports an error in its body', async () => {
    const { work, reject } = later();
    const response = await keepAliveJson(work, optionsFor(1));
    reject(new Error('It broke.'));
    expect([response.status, await response.json()]).toEqual([200, { stderr: 'Error: It broke.' }]);
  });

  it('releases its source if the caller has disconnected', async () => {
    const { work, resolve } = later();
    const gone = new AbortController();
    await keepAliveJson(work, optionsFor(1, gone.signal));
    const released = new Promise<void>((release) => {
      gone.abort();
      resolve(jsonBody({ a: longText(TEXT) }, { size: 1, release }));
    });
    await released;
  });
});
