/** Writes Markdown tables. */

/** Aligns the columns, and leaves out the last one where it is empty throughout. */
export function table(head, rows) {
  const isShort = rows.every((cells) => cells.at(-1) === '');
  const lines = [head, ...rows].map((cells) =>
    (isShort ? cells.slice(0, -1) : cells).map((cell) => cell.replaceAll('|', '\\|')),
  );
  const widths = lines[0].map((_, column) => Math.max(3, ...lines.map((cells) => cells[column].length)));
  const [first, ...others] = lines.map((cells) => cells.map((cell, column) => cell.padEnd(widths[column])));
  const rule = widths.map((width) => '-'.repeat(width));
  return [first, rule, ...others].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}
