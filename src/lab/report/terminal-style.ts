/** Finds out what a terminal can show (width, Unicode, colours), and formats text for it. */

export interface TerminalStyle {
  columns: number;
  unicode: boolean;
  colour: boolean;
}

export type Paint = 'bold' | 'dim' | 'good' | 'mixed' | 'bad' | 'positive' | 'negative' | 'plain';

const CODES: Record<Paint, string> = {
  bold: '1',
  dim: '2',
  good: '1;32',
  mixed: '1;33',
  bad: '1;31',
  positive: '34',
  negative: '33',
  plain: '',
};

const NARROWEST = 56;
const WIDEST = 100;

/** How characters that pictures and numbers use are written where only ASCII is known. */
const PLAIN: Record<string, string> = {
  '\u2212': '-',
  '–': '-',
  '—': '-',
  '│': '|',
  '─': '-',
  '◆': 'O',
  '●': '*',
  '➜': '>',
  '✓': '+',
  '✗': 'x',
  '·': '.',
  '‖': '||',
  '≥': '>=',
  '≤': '<=',
  '×': 'x',
  '²': '^2',
  '’': "'",
  '“': '"',
  '”': '"',
  '…': '...',
  Δ: 'd',
  α: 'alpha',
  '∞': 'inf',
};

/** Of a stream that is no terminal, such as a pipe. */
const USUAL_COLUMNS = 80;

/** For text that goes into answers. */
export const PIPED: TerminalStyle = { columns: USUAL_COLUMNS, unicode: true, colour: false };

export function terminalStyle(
  stream: { isTTY?: boolean; columns?: number },
  env: NodeJS.ProcessEnv = process.env,
): TerminalStyle {
  const columns = stream.columns ?? USUAL_COLUMNS;
  const encoding = env.LC_ALL || env.LC_CTYPE || env.LANG || '';
  return {
    columns: Math.min(WIDEST, Math.max(NARROWEST, columns)),
    unicode: /utf-?8/i.test(encoding) || env.WT_SESSION !== undefined,
    colour: stream.isTTY === true && !env.NO_COLOR && env.TERM !== 'dumb',
  };
}

export function painted(text: string, paint: Paint, style: TerminalStyle): string {
  return style.colour && paint !== 'plain' ? `\u001b[${CODES[paint]}m${text}\u001b[0m` : text;
}

/** Strips control characters from text, and replaces characters that the terminal lacks. */
export function shown(text: string, style: TerminalStyle): string {
  const safe = text.replace(/\p{C}/gu, '?');
  return style.unicode ? safe : safe.replace(/[^ -~]/gu, (character) => PLAIN[character] ?? '?');
}

/** Lines no longer than the terminal is wide, each after the indent. */
export function wrapped(text: string, indent: number, style: TerminalStyle): string[] {
  const room = style.columns - indent;
  const lines: string[] = [''];
  for (const word of text.split(/\s+/)) {
    const line = lines.at(-1) ?? '';
    if (line === '') lines[lines.length - 1] = word;
    else if (line.length + 1 + word.length <= room) lines[lines.length - 1] = `${line} ${word}`;
    else lines.push(word);
  }
  return lines.map((line) => ' '.repeat(indent) + line);
}
