/**
 * Refuses JSON that would hold the event loop for everybody while it is parsed: nested too deeply, or of too many values.
 * Looks at the bytes before any parser does, and leaves it to the parser whether they are JSON at all.
 */

import { CuvetteError } from './errors.ts';

/** How deep arrays and objects may lie in each other. */
export const DEEPEST_JSON = 200;
/** How many values there may be, the keys of objects counted with them. */
export const MOST_JSON_VALUES = 250_000;

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_ARRAY = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** Parses what is short enough to be looked at in one go. */
export function parseGuarded(text: string, mostValues = MOST_JSON_VALUES): unknown {
  const { refusal } = createScan(mostValues)(Buffer.from(text));
  if (refusal) throw refusal;
  return JSON.parse(text);
}

export interface Scanned {
  /** Why the JSON is refused, if it is. */
  refusal?: CuvetteError;
  /** The piece begins and ends within one string. */
  isWithinString: boolean;
}

/** Takes bytes piece by piece. In a string nothing counts but its end, which is looked for by the system's own search. */
export function createScan(mostValues = MOST_JSON_VALUES): (bytes: Buffer) => Scanned {
  let depth = 0;
  let values = 0;
  let isInString = false;
  let isEscaped = false;

  /** Where the string that goes on at `start` ends: behind its last quote, or at the end of the piece. */
  function endOfString(bytes: Buffer, start: number): number {
    let from = isEscaped ? start + 1 : start;
    while (true) {
      const quote = bytes.indexOf(QUOTE, from);
      const end = quote === -1 ? bytes.length : quote;
      isEscaped = backslashesBefore(bytes, end, from) % 2 === 1;
      isInString = quote === -1 || isEscaped;
      if (!isInString) return quote + 1;
      if (quote === -1) return end;
      isEscaped = false;
      from = quote + 1;
    }
  }

  return (bytes) => {
    let at = isInString ? endOfString(bytes, 0) : 0;
    if (isInString) return { isWithinString: true };
    while (at < bytes.length) {
      const byte = bytes[at];
      at += 1;
      if (byte === QUOTE) at = endOfString(bytes, at);
      else if (byte === COMMA || byte === COLON) values += 1;
      else if (byte === OPEN_ARRAY || byte === OPEN_OBJECT) {
        values += 1;
        depth += 1;
        if (depth > DEEPEST_JSON) return { refusal: tooDeep(), isWithinString: false };
      } else if (byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) depth -= 1;
      if (values > mostValues) return { refusal: tooMany(mostValues), isWithinString: false };
    }
    return { isWithinString: false };
  };
}

function backslashesBefore(bytes: Buffer, end: number, start: number): number {
  let first = end;
  while (first > start && bytes[first - 1] === BACKSLASH) first -= 1;
  return end - first;
}

function tooDeep(): CuvetteError {
  return new CuvetteError(
    'invalid_input',
    `The JSON has arrays and objects nested more than ${DEEPEST_JSON} deep. Send it flatter, or as text in one string.`,
  );
}

function tooMany(mostValues: number): CuvetteError {
  return new CuvetteError(
    'too_large',
    `The JSON has more than ${mostValues} values and keys. Send less at once, as text in one string, or as a file.`,
  );
}
