/** Reads JSON from the body of a request without holding the event loop: a string of many megabytes is parsed as it arrives. */

import { randomUUID } from 'node:crypto';
import { CuvetteError } from './errors.ts';
import { createScan } from './json-guard.ts';

/** How many characters there may be beside long strings: so many are parsed in one go. */
export const MOST_JSON_AT_ONCE = 16 * 1024 * 1024;

/** Bytes. */
const LARGE = 256 * 1024;
/** Characters. */
const LONGEST_BEGINNING = 2000;
const LONGEST_ESCAPE = 6;
const beginnings = new WeakMap<Request, string>();

/** How a body began that was read here; nothing for one that was not. */
export function beginningOf(request: Request): string | undefined {
  return beginnings.get(request);
}

export interface RequestJson {
  isBlank: boolean;
  /** Throws a SyntaxError if it is not JSON. */
  parse(): unknown;
}

/**
 * Reads a body whose size was limited before. Each piece is checked as it comes, so that others are served meanwhile; of a body that
 * is refused the rest is read past, since most clients hear the answer only then.
 */
export async function readJsonBody(request: Request): Promise<RequestJson> {
  const scan = createScan();
  const decoder = new TextDecoder();
  const json = collectJson();
  let refusal: CuvetteError | undefined;
  for await (const piece of piecesOf(request)) {
    if (!beginnings.has(request)) beginnings.set(request, piece.toString('utf8', 0, LONGEST_BEGINNING));
    if (refusal) continue;
    const scanned = scan(piece);
    json.add(decoder.decode(piece, { stream: true }), scanned.isWithinString);
    refusal = scanned.refusal ?? (json.atOnce() > MOST_JSON_AT_ONCE ? tooMuch() : undefined);
    if (refusal) json.clear();
  }
  if (refusal) throw refusal;
  json.add(decoder.decode(), false);
  return json;
}

async function* piecesOf(request: Request): AsyncGenerator<Buffer> {
  try {
    // A stream costs more to make than a short body takes to read.
    if (Number(request.headers.get('content-length') ?? LARGE) < LARGE) yield Buffer.from(await request.arrayBuffer());
    else for await (const piece of request.body ?? []) yield Buffer.from(piece.buffer, piece.byteOffset, piece.length);
  } catch (error) {
    throw new CuvetteError('invalid_input', 'The request ended before its body was whole. Send it again.', {
      cause: error,
    });
  }
}

/** Collects JSON text. Pieces that lie within one string are parsed at once, and a mark stands in the text for them until the rest is parsed. */
function collectJson(): RequestJson & {
  add(piece: string, isWithinString: boolean): void;
  atOnce(): number;
  clear(): void;
} {
  const mark = randomUUID();
  let text = '';
  /** The text after that, of the last piece that is not within a string: the next string opens in it. Short, because to look into a text that grows costs as much as all of it. */
  let last = '';
  /** The parsed insides of long strings. */
  let insides: string[] = [];
  let isInside = false;
  /** An escape sequence whose end is yet to come. */
  let rest = '';
  let problem: unknown;

  function addInside(piece: string): void {
    if (!isInside) {
      const cut = endOfWholeEscapes(last);
      rest = last.slice(cut);
      last = `${last.slice(0, cut)}${mark}${insides.length}.`;
      insides.push('');
      isInside = true;
    }
    const escaped = rest + piece;
    const cut = endOfWholeEscapes(escaped);
    rest = escaped.slice(cut);
    try {
      insides[insides.length - 1] += JSON.parse(`"${escaped.slice(0, cut)}"`);
    } catch (error) {
      problem ??= error;
    }
  }

  return {
    get isBlank() {
      return (text + last).trim() === '';
    },
    atOnce: () => text.length + last.length,
    clear() {
      text = last = rest = '';
      insides = [];
    },
    add(piece, isWithinString) {
      if (isWithinString) return addInside(piece);
      text += last;
      last = rest + piece;
      rest = '';
      isInside = false;
    },
    parse() {
      if (problem !== undefined) throw problem;
      const value: unknown = JSON.parse(text + last);
      return insides.length === 0 ? value : withInsides(value, mark, insides);
    },
  };
}

function withInsides(value: unknown, mark: string, insides: readonly string[]): unknown {
  const restored = (string: string) => {
    const at = string.indexOf(mark);
    if (at === -1) return string;
    const end = string.indexOf('.', at);
    return string.slice(0, at) + insides[Number(string.slice(at + mark.length, end))] + string.slice(end + 1);
  };
  const visit = (part: unknown): unknown => {
    if (typeof part === 'string') return restored(part);
    if (Array.isArray(part)) return part.map(visit);
    if (typeof part !== 'object' || part === null) return part;
    return Object.fromEntries(Object.entries(part).map(([key, item]) => [restored(key), visit(item)]));
  };
  return visit(value);
}

/** Where text that may break off within an escape sequence can be cut. */
function endOfWholeEscapes(text: string): number {
  const last = text.lastIndexOf('\\');
  if (last === -1 || text.length - last >= LONGEST_ESCAPE) return text.length;
  let first = last;
  while (first > 0 && text[first - 1] === '\\') first -= 1;
  const isEscaped = (last - first) % 2 === 1;
  const isWhole = isEscaped || (last + 1 < text.length && text[last + 1] !== 'u');
  return isWhole ? text.length : last;
}

function tooMuch(): CuvetteError {
  return new CuvetteError(
    'too_large',
    `The JSON has more than ${MOST_JSON_AT_ONCE} characters beside its long strings. Send less at once, as text in one string, or as a file.`,
  );
}
