import { describe, expect, it } from 'vitest';
import type { MimeBundle } from '../../src/interpreters/interpreter.ts';
import { headAndTail, imageIn, textOf } from '../../src/sessions/output-text.ts';

const shown = (data: MimeBundle) => textOf({ type: 'display', data, metadata: {} });

describe('the text of an output', () => {
  it('is what was printed, unchanged', () => {
    expect(textOf({ type: 'stream', name: 'stdout', text: 'no end of line' })).toBe('no end of line');
    expect(textOf({ type: 'stream', name: 'stderr', text: '\r50 %' })).toBe('\r50 %');
  });

  it('is the traceback of an error, on lines', () => {
    const error = { type: 'error' as const, ename: 'E', evalue: 'v', traceback: ['Traceback', 'E: v'] };
    expect(textOf(error)).toBe('Traceback\nE: v\n');
  });

  it('is the plain text of a value, on a line of its own', () => {
    expect(textOf({ type: 'result', data: { 'text/plain': '42' }, metadata: {} })).toBe('42\n');
    expect(shown({ 'text/plain': 'already\n' })).toBe('already\n');
  });

  it('is the plainest of several forms', () => {
    expect(shown({ 'text/html': '<b>x</b>', 'text/plain': 'x' })).toBe('x\n');
    expect(shown({ 'text/html': '<b>x</b>', 'text/markdown': '**x**' })).toBe('**x**\n');
    expect(shown({ 'text/html': '<b>x</b>' })).toBe('<b>x</b>\n');
  });

  it('leaves out the stand-in for a picture', () => {
    expect(shown({ 'image/png': 'AAAA', 'text/plain': '<Figure size 640x480>' })).toBe('');
  });

  it('is empty for what has no text, and for what is no string', () => {
    expect(shown({ 'application/json': { a: 1 } })).toBe('');
    expect(shown({ 'text/plain': 42 })).toBe('');
  });
});

describe('a picture in an output', () => {
  it('is found, without the line breaks of its base64', () => {
    expect(imageIn({ 'image/png': 'AA\nAA\n' })).toEqual({ mimeType: 'image/png', base64: 'AAAA' });
    expect(imageIn({ 'image/jpeg': 'BBBB' })).toEqual({ mimeType: 'image/jpeg', base64: 'BBBB' });
  });

  it('is not one that an agent cannot be shown', () => {
    expect(imageIn({ 'image/svg+xml': '<svg/>', 'text/plain': 'x' })).toBeUndefined();
  });
});

describe('the head and tail of a long text', () => {
  it('are the first and the last of it, with what was left out between', () => {
    const text = `${'a'.repeat(5000)}${'b'.repeat(5000)}`;
    const cut = headAndTail(text.slice(0, 1000), text.slice(-1000), text.length, 1000);
    expect(cut.omitted).toBe(9000);
    expect(cut.text).toBe(`${'a'.repeat(500)}\n[… 9,000 characters left out …]\n${'b'.repeat(500)}`);
  });

  it('never cut a character in half', () => {
    for (let limit = 2; limit < 40; limit++) {
      for (const text of ['🐢'.repeat(50), `a${'🐢'.repeat(50)}b`]) {
        const cut = headAndTail(text, text, text.length, limit);
        expect(cut.text).not.toMatch(/\p{Surrogate}/u);
        const kept = cut.text.replace(/\n\[….*…\]\n/, '').length;
        expect(kept + cut.omitted).toBe(text.length);
      }
    }
  });
});
