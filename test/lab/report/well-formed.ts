/** Checks markup as a strict parser does: every element is closed, every attribute is quoted, no number is missing. */

import { expect } from 'vitest';

const VOID = new Set(['meta', 'br', 'link', 'img', 'hr']);

export function expectWellFormed(text: string): void {
  const open: string[] = [];
  const body = text.replace(/<!doctype html>|<\?xml[^>]*\?>|<style>[^<]*<\/style>/g, '');
  for (const [tag, closing, name = '', attributes = '', alone] of body.matchAll(
    /<(\/?)([a-zA-Z][\w-]*)((?:\s+[\w:-]+="[^"<]*")*)\s*(\/?)>/g,
  )) {
    if (closing) expect(open.pop(), tag).toBe(name);
    else if (!alone && !VOID.has(name)) open.push(name);
    expect(attributes).not.toMatch(/NaN|undefined|Infinity|\[object/);
  }
  expect(open).toEqual([]);
  const rest = body.replace(/<(\/?)([a-zA-Z][\w-]*)((?:\s+[\w:-]+="[^"<]*")*)\s*(\/?)>/g, '');
  expect(rest).not.toMatch(/[<>]/);
  expect(rest).not.toMatch(/&(?!(amp|lt|gt|quot|#39);)/);
}

/** The record with all its texts replaced. */
export function withTexts<T>(value: T, text: string): T {
  const replaced = JSON.stringify(value, (key, part: unknown) => {
    const isFixed = ['kind', 'method', 'by', 'chosen', 'place', 'verdict', 'reason'].includes(key);
    return typeof part === 'string' && !isFixed ? text : part;
  });
  return JSON.parse(replaced) as T;
}
