/** Parses positions in a prompt as callers write them, and resolves them to token indices. */

import { CuvetteError } from '../../errors.ts';
import type { Positions } from './engine.ts';

const NAMES: Record<string, number> = { end_question: -1, end_prompt: -1, last_token: -1, first_token: 0 };

/** Negative positions count from the end of the prompt, so that -1 is its last token. */
export function parsePosition(spec: string | number): number {
  const text = String(spec).trim().toLowerCase();
  if (/^-?\d+$/.test(text)) return Number(text);
  const [, name, offset] = /^(\w+)(?::([+-]?\d+))?$/.exec(text) ?? [];
  const base = name !== undefined && Object.hasOwn(NAMES, name) ? NAMES[name] : undefined;
  if (base === undefined) throw new CuvetteError('invalid_input', `There is no position ${show(spec)}. ${ADVICE}`);
  const position = offset === undefined ? base : base + Number(offset);
  // Counted from the end it must stay before the end, and counted from the start it must not become negative: both would mean another token.
  if (position < 0 !== base < 0) {
    throw new CuvetteError('invalid_input', `Position ${show(spec)} is outside of every prompt. ${ADVICE}`);
  }
  return position;
}

/** From 0, in the order given. The prompt is for the error only. */
export function resolvePositions(positions: Positions, length: number, prompt?: string): number[] {
  const resolve = (position: number): number => {
    const absolute = position < 0 ? position + length : position;
    if (Number.isInteger(absolute) && absolute >= 0 && absolute < length) return absolute;
    const which = prompt === undefined ? 'a prompt' : `the prompt ${show(shortened(prompt))}`;
    const advice = 'Positions count from 0, or from the end as -1, -2, and so on.';
    throw new CuvetteError('invalid_input', `Position ${position} is outside ${which} of ${length} tokens. ${advice}`);
  };
  if ('from' in positions) {
    const from = resolve(positions.from);
    return Array.from({ length: length - from }, (_, i) => from + i);
  }
  return positions.map(resolve);
}

const ADVICE =
  'Give an integer (-1 is the last token), end_question, last_token or first_token, or one of those with an offset, as in end_question:-2.';

function show(value: string | number): string {
  return JSON.stringify(value);
}

function shortened(text: string): string {
  return text.length > 60 ? `${text.slice(0, 59)}…` : text;
}
