/** Prints what the ground-truth suite found: families, confusion, rates, and the numbers behind verdicts that were wrong. */

const VERDICTS = ['causal', 'weak-causal', 'epiphenomenal-softmax', 'epiphenomenal-template', 'undetermined'];

export function printTally(title, { runs, right, abstained, rightReasons, families, confusion }) {
  console.log(`\n${title}`);
  for (const [name, { right: its, abstained: left, of, verdicts }] of families) {
    const others = [...verdicts].map(([verdict, count]) => `${count} ${verdict}`).join(', ');
    console.log(
      `  ${name.padEnd(26)}${`${its}/${of}`.padStart(7)}${left > 0 ? ` (${left} abstained)` : ''}  ${others}`,
    );
  }
  console.log('\nTruth (rows) and verdict (columns):');
  row(['', ...VERDICTS]);
  for (const [truth, counts] of confusion) row([truth, ...VERDICTS.map((verdict) => counts.get(verdict) ?? '·')]);
  console.log(
    `${right} of ${runs} verdicts are right (${percent(right / runs)}), ${rightReasons} for the right reason; ` +
      `${abstained} times it asked for more data, ${runs - right - abstained} times it was wrong.`,
  );
}

export function printRate(name, { count, of, interval }) {
  console.log(
    `  ${name.padEnd(20)}${count} of ${of}: ${percent(count / of)}, 95 % interval ${percent(interval.low)} to ${percent(interval.high)}`,
  );
}

export function printRun(run) {
  const outcome =
    run.outcome === 'right' ? (run.rightReason ? '' : '  (another reason)') : `  ${run.outcome.toUpperCase()}`;
  console.log(`${run.family} ${run.seed}: ${run.verdict}, ${run.reason}${outcome}`);
  if (run.outcome !== 'right') console.log(`    truth ${run.truth.verdict}; ${keyNumbers(run.evidence)}`);
}

/** The numbers that decide, of any edition of the evidence. */
export function keyNumbers(evidence) {
  const { behaviour, decodability, steering, interchange, ablation, sweep } = evidence;
  return [
    `G ${digits(behaviour.gap)}${range(behaviour.interval)}`,
    `AUROC ${digits(decodability.auroc)}${range(decodability.interval)} p ${digits(decodability.permutation.p)}`,
    ...Object.entries({ S: steering, I: interchange, N: ablation }).map(
      ([name, one]) =>
        `${name} ${digits(one.value)}${range(one.interval)} p ${digits(one.p)} adjusted ${digits(one.adjusted)}${one.state ? ` ${one.state}` : ''}${rest(one)}`,
    ),
    ...Object.entries(evidence.guards ?? {}).map(([name, one]) => `${name} ${scalars(one)}`),
    ...['harm', 'dormancy', 'saturation', 'temperature', 'multiplicity']
      .filter((name) => evidence[name] !== undefined)
      .map((name) => `${name} ${scalars(evidence[name])}`),
    `sweep ${digits(sweep.change)}, common ${digits(sweep.commonScale)}`,
  ].join('; ');
}

/** What an effect has beyond what all have. */
function rest({ value: _v, interval: _i, p: _p, adjusted: _a, state: _s, each: _e, null: _n, ...others }) {
  const told = scalars(others);
  return told === '' ? '' : ` (${told})`;
}

function scalars(value, path = '') {
  if (typeof value === 'number') return `${path} ${digits(value)}`.trim();
  if (typeof value === 'string' || typeof value === 'boolean') return `${path} ${value}`.trim();
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return '';
  return Object.entries(value)
    .map(([key, part]) => scalars(part, path === '' ? key : `${path}.${key}`))
    .filter((told) => told !== '')
    .join(', ');
}

export function percent(share) {
  return `${Number((100 * share).toPrecision(3))} %`;
}

function digits(value) {
  return typeof value === 'number' ? String(Number(value.toPrecision(3))) : String(value);
}

function range(interval) {
  return interval ? ` [${digits(interval.low)}, ${digits(interval.high)}]` : '';
}

function row(cells) {
  const widths = [24, ...VERDICTS.map((verdict) => verdict.length + 2)];
  console.log(
    cells.map((cell, i) => (i === 0 ? String(cell).padEnd(widths[i]) : String(cell).padStart(widths[i]))).join(''),
  );
}
