/**
 * Reads the HTML that pandas makes of a DataFrame as plain cells of text, so that the page draws a table of its own. The HTML is parsed into a
 * document that runs nothing and loads nothing, and only text is taken from it; other HTML is left to the frame.
 */

export interface FrameTableCells {
  head: string[][];
  /** The first `headers` cells of a row are its index. */
  rows: { headers: number; cells: string[] }[];
  /** What stands below it: "1000 rows × 4 columns". */
  note: string;
}

const LARGEST = 400_000;
const MOST_ROWS = 500;

export function readFrameTable(html: string): FrameTableCells | undefined {
  if (html.length > LARGEST || !/<table[^>]*class="[^"]*\bdataframe\b/.test(html)) return undefined;
  const document = new DOMParser().parseFromString(withoutStyle(html), 'text/html');
  const tables = document.querySelectorAll('table');
  const table = tables[0];
  if (!table || tables.length > 1 || document.querySelector('script, img, svg, iframe, form, a, object, embed'))
    return undefined;
  if (table.querySelector('[colspan]:not([colspan="1"]), [rowspan]:not([rowspan="1"])')) return undefined;
  const rows = [...table.querySelectorAll('tbody tr')];
  if (rows.length > MOST_ROWS) return undefined;
  return {
    head: [...table.querySelectorAll('thead tr')].map((row) => textsOf(row)),
    rows: rows.map((row) => ({ headers: row.querySelectorAll('th').length, cells: textsOf(row) })),
    note: document.querySelector('div > p')?.textContent?.trim() ?? '',
  };
}

/** Styles would be refused by the page's policy, with a line on the console for each. */
function withoutStyle(html: string): string {
  return html.replace(/<style[\s\S]*?<\/style>/gi, '').replace(/\sstyle="[^"]*"/gi, '');
}

function textsOf(row: Element): string[] {
  return [...row.querySelectorAll('th, td')].map((cell) => cell.textContent ?? '');
}
