/** How figures are compared and shown: ours beside theirs, as a ratio, with its bound. */

/** A figure of ours, one of theirs, and at most how large the ratio may be. */
export function row(what, ours, theirs, limit, show = ms) {
  return { what, ours: show(ours), theirs: show(theirs), ratio: ours / theirs, limit, isMet: ours / theirs <= limit };
}

export function print(rows) {
  const shown = rows.map(({ what, ours, theirs, ratio, limit, isMet }) => [
    what,
    ours,
    theirs,
    fraction(ratio),
    limit === 0 ? '0' : fraction(limit),
    isMet ? 'yes' : 'NO',
  ]);
  printTable([['what', 'Cuvette', 'beside it', 'ratio', 'at most', 'met'], ...shown]);
}

/** Its first row names the columns. */
export function printTable(table) {
  const widths = table[0].map((_, column) => Math.max(...table.map((cells) => cells[column].length)));
  for (const cells of table)
    process.stdout.write(`${cells.map((cell, column) => cell.padEnd(widths[column])).join('  ')}\n`);
}

function ms(seconds) {
  return `${(seconds * 1000).toPrecision(3)} ms`;
}

function fraction(ratio) {
  return ratio < 1 && ratio > 0 ? `1/${(1 / ratio).toFixed(1)}` : ratio.toFixed(2);
}

export function median(values) {
  return quantile(values, 0.5);
}

export function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}

export function say(text) {
  process.stderr.write(`${text}\n`);
}
