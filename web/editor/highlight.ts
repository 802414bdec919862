/** Cuts code into pieces with the classes of its syntax, line by line, for code that is only read. */

import { classHighlighter, highlightCode } from '@lezer/highlight';
import { loadLanguage } from './languages.ts';

export interface Piece {
  text: string;
  classes: string;
}

/** Beyond this, code is shown plain: nobody reads it by its colours, and parsing would hold the page. */
const MOST = 100_000;

export async function highlight(code: string, language: string): Promise<Piece[][] | undefined> {
  if (code.length > MOST) return undefined;
  const found = await loadLanguage(language);
  if (!found) return undefined;
  const lines: Piece[][] = [[]];
  highlightCode(
    code,
    found.parser.parse(code),
    classHighlighter,
    (text, classes) => lines.at(-1)?.push({ text, classes }),
    () => lines.push([]),
  );
  return lines;
}
