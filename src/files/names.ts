/** Checks file names: a name is a path relative to a workspace that never leaves it, and that no screen shows as something else. */

import { CuvetteError } from '../errors.ts';

const LONGEST_SEGMENT = 255;
const LONGEST_NAME = 1024;

const LINE_BREAK = /[\n\r\u0085\u2028\u2029]/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/;
/** They make `a\u202Egpj.exe` look like `aexe.jpg`. The plain marks, U+200E and U+200F, do not, and belong to some languages. */
const DIRECTION_OVERRIDE = /[\u202a-\u202e\u2066-\u2069]/;

/** The name in its one form: NFC, no `./`, no `//`, no `/mnt/data/` before it. Throws if there is none. */
export function safeName(raw: string): string {
  const refuse = (problem: string): never => {
    throw new CuvetteError('invalid_input', `The file name ${shownName(raw)} ${problem}.`);
  };

  if (!raw.isWellFormed()) refuse('is not valid Unicode');
  if (isBlank(raw)) refuse('is empty');
  if (raw.includes('\0')) refuse('holds a NUL character');
  if (LINE_BREAK.test(raw)) refuse('holds a line break');
  if (CONTROL.test(raw)) refuse('holds a control character');
  if (DIRECTION_OVERRIDE.test(raw)) refuse('holds a character that changes the direction of writing');
  if (/(^|\/)\.?$/.test(raw)) refuse('names a folder');

  const name = raw
    .normalize('NFC')
    .split('/')
    .filter((part, index) => part !== '.' && (part !== '' || index === 0))
    .join('/')
    .replace(/^\/mnt\/data\//, '');
  if (isBlank(name)) refuse('is empty');
  // Here a backslash is a letter like any other, but whoever downloads the file may take it for a separator.
  if (/^[/\\]|^[A-Za-z]:[/\\]/.test(name)) {
    refuse('is an absolute path. Give it relative to the workspace, as in data/table.csv');
  }
  if (name.split(/[/\\]/).includes('..')) refuse('goes out of the workspace by ".."');
  if (name.split('/').some((part) => Buffer.byteLength(part) > LONGEST_SEGMENT)) {
    refuse(`has a part of more than ${LONGEST_SEGMENT} bytes`);
  }
  if (Buffer.byteLength(name) > LONGEST_NAME) refuse(`has more than ${LONGEST_NAME} bytes`);
  return name;
}

function isBlank(text: string): boolean {
  return text.trim() === '';
}

/** The name as it may stand in a message: escaped, and not too long. */
export function shownName(raw: string): string {
  const text = raw.length > 80 ? `${raw.slice(0, 80)}…` : raw;
  return JSON.stringify(text.toWellFormed()).replace(
    /[\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g,
    (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
