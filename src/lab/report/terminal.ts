/** Draws a protocol run as text for a terminal. */

import { countClasses, fromLast } from '../causality/classes.ts';
import { rowAt } from '../causality/dataset.ts';
import { stateOf } from '../causality/effect-states.ts';
import type { Effect, Evidence } from '../causality/evidence.ts';
import type { ProtocolRecord } from '../causality/verdict.ts';
import { guardsOf } from './guards.ts';
import { formatCount, formatP, formatPercent, formatShort, formatShortInterval } from './numbers.ts';
import { binned, clamp, type Domain, domainOf } from './scale.ts';
import { type Paint, painted, shown, type TerminalStyle, wrapped } from './terminal-style.ts';
import { titleOf, toneOf, VERDICT_NAMES } from './verdict-names.ts';

const INDENT = 4;
const NAMES = 15;
const BINS = 48;
const UNICODE_LEVELS = ' ▁▂▃▄▅▆▇█';
const ASCII_LEVELS = ' .:-=+*#@';

export function drawRecord(record: ProtocolRecord, style: TerminalStyle): string {
  const { evidence, verdict } = record;
  const lines = [
    ...wrapped(shown(titleOf(record), style), 0, style).map((line) => painted(line, 'bold', style)),
    ...beside(
      VERDICT_NAMES[verdict.verdict],
      toneOf(verdict.verdict),
      `(${verdict.verdict}: ${verdict.reason})`,
      style,
    ),
    ...wrapped(shown(verdict.sentence, style), 2, style),
    '',
    ...examples(record, style),
    ...classes(
      'Can it be read? Held-out scores',
      scoresText(evidence),
      evidence.decodability.scores,
      evidence.decodability.labels,
      evidence.data.classes,
      style,
    ),
    ...classes(
      'Does the model act on it? Margins',
      gapText(evidence),
      evidence.behaviour.margins,
      evidence.behaviour.labels,
      evidence.data.classes,
      style,
    ),
    ...effects(evidence, style),
    ...sweep(evidence, style),
    ...guards(evidence, style),
    ...decision(record, style),
  ];
  return `${lines.join('\n')}\n`;
}

/** One prompt of each class. */
function examples({ question, evidence }: ProtocolRecord, style: TerminalStyle): string[] {
  const labels = evidence.examples.map(({ row }) => rowAt(question.dataset, row).label);
  const lines = evidence.examples.flatMap(({ row, before, component }, index) => {
    if (labels.indexOf(labels[index] ?? 0) !== index) return [];
    const said = `${JSON.stringify(before.text)}, with the component swapped ${JSON.stringify(component.text)}`;
    return wrapped(shown(`${rowAt(question.dataset, row).prompt} ➜ ${said}`, style), INDENT, style);
  });
  return lines.length > 0 ? [...heading('What the model says', '', style), ...lines, ''] : [];
}

function scoresText({ decodability }: Evidence): string {
  const { auroc, interval, permutation } = decodability;
  return `AUROC ${formatShort(auroc)} ${formatShortInterval(interval)}, p = ${formatP(permutation.p)}`;
}

function gapText({ behaviour }: Evidence): string {
  return `natural gap ${formatShort(behaviour.gap)} ${formatShortInterval(behaviour.interval)}`;
}

/** A histogram for each class on one axis. */
function classes(
  title: string,
  result: string,
  values: readonly number[],
  labels: readonly number[],
  named: Evidence['data']['classes'],
  style: TerminalStyle,
) {
  const width = Math.min(BINS, style.columns - INDENT - NAMES - 1);
  const domain = domainOf(values, 0);
  const of = (label: number) =>
    binned(
      values.filter((_, index) => labels[index] === label),
      domain,
      width,
    );
  const shownClasses = fromLast(countClasses(labels));
  const highest = Math.max(1, ...shownClasses.flatMap(of));
  const row = (label: number) => {
    const name = named?.[label]?.name.slice(0, NAMES) ?? `label ${label}`;
    const paint: Paint = label % 2 === 1 ? 'positive' : 'negative';
    return besideName(shown(name, style), painted(blocks(of(label), highest, style).trimEnd(), paint, style));
  };
  return [...heading(title, result, style), ...shownClasses.map(row), axis(domain, width, [0], style), ''];
}

/** Each effect as a mark on an axis, with the random directions' histogram behind it. */
function effects({ steering, interchange, ablation, multiplicity }: Evidence, style: TerminalStyle): string[] {
  const all: [string, Effect][] = [
    ['S steering', steering],
    ['I interchange', interchange],
    ['N ablation', ablation],
  ];
  const results = all.map(
    ([, effect]) => `${formatShort(effect.value)} ${formatShortInterval(effect.interval)} ${stateOf(effect)}`,
  );
  const longest = Math.max(...results.map((result) => result.length));
  const width = style.columns - INDENT - NAMES - longest - 3;
  const domain = domainOf(
    all.flatMap(([, effect]) => [...effect.null, effect.interval.low, effect.interval.high, 0, 1]),
    0,
  );
  const title = heading('Does it cause it?', 'share of the natural gap', style);
  const rows = all.map(([name, effect], index) =>
    besideName(name, `${effectLine(effect, domain, width, style)}  ${shown(results[index] ?? '', style)}`),
  );
  const note = `${mark(style)} with its interval: the direction; blocks: ${formatCount(multiplicity.nulls)} random directions`;
  return [
    ...title,
    ...rows,
    axis(domain, width, [0, 1], style),
    ...wrapped(shown(note, style), INDENT, style).map((line) => painted(line, 'dim', style)),
    '',
  ];
}

function effectLine(effect: Effect, domain: Domain, width: number, style: TerminalStyle): string {
  const place = (value: number) =>
    clamp(Math.floor(((value - domain.low) / (domain.high - domain.low)) * width), 0, width - 1);
  const counts = binned(effect.null, domain, width);
  const cells = [...blocks(counts, Math.max(1, ...counts), style)];
  const [from, to, at] = [place(effect.interval.low), place(effect.interval.high), place(effect.value)];
  const drawn = cells.map((cell, index): { cell: string; paint: Paint } => {
    if (index === at) return { cell: mark(style), paint: 'positive' };
    if (index >= from && index <= to && cell === ' ') return { cell: shown('─', style), paint: 'positive' };
    return { cell, paint: 'dim' };
  });
  const runs: { cell: string; paint: Paint }[] = [];
  for (const next of drawn) {
    const last = runs.at(-1);
    if (last?.paint === next.paint) last.cell += next.cell;
    else runs.push({ ...next });
  }
  return runs.map(({ cell, paint }) => painted(cell, paint, style)).join('');
}

function sweep({ sweep: { rows, random } }: Evidence, style: TerminalStyle): string[] {
  const width = Math.max(6, Math.floor((style.columns - INDENT - NAMES - 2 - 2 * 7) / 2));
  const bar = (rate: number, paint: Paint) => {
    const filled = Math.round(rate * width);
    const drawn = (style.unicode ? '█' : '#').repeat(filled) + shown('·', style).repeat(width - filled);
    return `${painted(drawn, paint, style)} ${formatPercent(rate).padStart(5)}`;
  };
  const lines = rows.map((row, index) => {
    const other = random[index];
    const compared = other ? `  ${bar(other.flips.rate, 'dim')}` : '';
    return besideName(
      shown(`${formatShort(row.dose.norm)} lengths`, style),
      `${bar(row.flips.rate, 'positive')}${compared}`,
    );
  });
  return [...heading('Answers that flip', 'the direction, and random directions, by dose', style), ...lines, ''];
}

function guards(evidence: Evidence, style: TerminalStyle): string[] {
  const lines = guardsOf(evidence).flatMap(({ name, value, limit, passes }) => {
    const sign = painted(shown(passes ? '✓' : '✗', style), passes ? 'good' : 'bad', style);
    const [first = '', ...rest] = wrapped(shown(`${name}: ${value}, ${limit}`, style), INDENT + 2, style);
    return [`${' '.repeat(INDENT)}${sign} ${first.trimStart()}`, ...rest];
  });
  return [...heading('Guards', '', style), ...lines, ''];
}

function decision({ verdict }: ProtocolRecord, style: TerminalStyle): string[] {
  const lines = verdict.path.flatMap(({ condition, matched, because }) => {
    const [first = '', ...rest] = wrapped(shown(`${condition}: ${because}`, style), INDENT + 2, style);
    const sign = shown(matched ? '➜' : '–', style);
    const paint = matched ? 'bold' : 'dim';
    return [`${' '.repeat(INDENT)}${sign} ${first.trimStart()}`, ...rest].map((line) => painted(line, paint, style));
  });
  return [...heading('Decision', 'the first row that holds', style), ...lines];
}

function heading(title: string, result: string, style: TerminalStyle): string[] {
  return beside(title, 'bold', result, style);
}

/** Two texts in one line, or in two where they do not fit. */
function beside(first: string, paint: Paint, second: string, style: TerminalStyle): string[] {
  const [left, right] = [`  ${painted(first, paint, style)}`, painted(shown(second, style), 'dim', style)];
  if (second === '') return [left];
  const fits = first.length + second.length + 4 <= style.columns;
  return fits ? [`${left}  ${right}`] : [left, `${' '.repeat(INDENT)}${right}`];
}

function besideName(name: string, rest: string): string {
  return `${' '.repeat(INDENT)}${name.padEnd(NAMES)} ${rest}`.trimEnd();
}

/** The ends of an axis, and marks where there is room for them. */
function axis(domain: Domain, width: number, marks: readonly number[], style: TerminalStyle): string {
  const cells = new Array<string>(width).fill(' ');
  const put = (value: number, at: number) => {
    const text = shown(formatShort(value), style);
    const start = clamp(at, 0, width - text.length);
    if (cells.slice(Math.max(0, start - 1), start + text.length + 1).some((cell) => cell !== ' ')) return;
    for (const [index, character] of [...text].entries()) cells[start + index] = character;
  };
  const place = (value: number) => Math.floor(((value - domain.low) / (domain.high - domain.low)) * width);
  put(domain.low, 0);
  put(domain.high, width);
  for (const value of marks) if (value > domain.low && value < domain.high) put(value, place(value));
  return besideName('', painted(cells.join('').trimEnd(), 'dim', style));
}

function blocks(counts: readonly number[], highest: number, style: TerminalStyle): string {
  const levels = style.unicode ? UNICODE_LEVELS : ASCII_LEVELS;
  return counts.map((count) => levels[Math.ceil((count / highest) * 8)] ?? ' ').join('');
}

function mark(style: TerminalStyle): string {
  return shown('◆', style);
}
