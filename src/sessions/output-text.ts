/** Renders outputs as text: what was printed, what was shown, what went wrong, in order. Pure. */

import type { MimeBundle, Output } from '../interpreters/interpreter.ts';

export function textOf(output: Output): string {
  switch (output.type) {
    case 'stream':
      return output.text;
    case 'error':
      return `${output.traceback.join('\n')}\n`;
    case 'result':
    case 'display':
      return shownText(output.data);
  }
}

/** Where the text of an output belongs. */
export function streamOf(output: Output): 'stdout' | 'stderr' {
  if (output.type === 'stream') return output.name;
  return output.type === 'error' ? 'stderr' : 'stdout';
}

/** A picture's text is only a stand-in for it, and is left out. */
function shownText(data: MimeBundle): string {
  if (imageIn(data)) return '';
  for (const type of ['text/plain', 'text/markdown', 'text/latex', 'text/html']) {
    const text = data[type];
    if (typeof text === 'string') return text.endsWith('\n') ? text : `${text}\n`;
  }
  return '';
}

export function imageIn(data: MimeBundle): { mimeType: string; base64: string } | undefined {
  for (const mimeType of ['image/png', 'image/jpeg']) {
    const base64 = data[mimeType];
    if (typeof base64 === 'string') return { mimeType, base64: base64.replace(/\s/g, '') };
  }
  return undefined;
}

/** The first and the last of a text that is too long, and how much was left out between them. */
export function headAndTail(
  head: string,
  tail: string,
  length: number,
  limit: number,
): { text: string; omitted: number } {
  const half = Math.floor(limit / 2);
  const first = wholeCharacters(head.slice(0, half));
  const last = wholeCharacters(tail.slice(-half));
  const omitted = length - first.length - last.length;
  return { text: `${first}\n[… ${omitted.toLocaleString('en')} characters left out …]\n${last}`, omitted };
}

/** Cuts off half of a character that takes two code units. */
function wholeCharacters(text: string): string {
  const start = /^[\uDC00-\uDFFF]/.test(text) ? 1 : 0;
  const end = /[\uD800-\uDBFF]$/.test(text) ? text.length - 1 : text.length;
  return text.slice(start, end);
}
