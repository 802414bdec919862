/** Builds HTML and SVG from templates that escape every value that is not markup itself. */

export interface Markup {
  readonly markup: string;
}

/** A number is a coordinate; numbers that are to be read are formatted by `numbers.ts` first. */
export type Content = string | number | Markup | readonly Content[] | undefined | false;

const ESCAPES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

export function markup(strings: TemplateStringsArray, ...values: Content[]): Markup {
  return {
    markup: strings.map((text, index) => text + (index < values.length ? written(values[index]) : '')).join(''),
  };
}

/** For what is already safe by how it was made, such as base64. */
export function trusted(text: string): Markup {
  return { markup: text };
}

function written(value: Content): string {
  if (value === undefined || value === false) return '';
  if (typeof value === 'string') return escaped(value);
  if (typeof value === 'number') return String(Number((Number.isFinite(value) ? value : 0).toFixed(2)));
  if ('markup' in value) return value.markup;
  return value.map(written).join('');
}

/** Control characters have no place in XML, even escaped. */
function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ESCAPES[character] ?? '').replace(/[^\P{C}\n\t]/gu, '\u{fffd}');
}
