/** Draws single panels of a protocol run: scores, effects against their null distributions, and all effects side by side. */

import { stateOf } from '../causality/effect-states.ts';
import type { Effect, Evidence } from '../causality/evidence.ts';
import type { Interval } from '../statistics/bootstrap.ts';
import { mean } from '../statistics/summary.ts';
import { type Box, framed, type Plot, plotOf } from './axes.ts';
import { type Markup, markup } from './markup.ts';
import { formatP, formatShort, formatShortInterval } from './numbers.ts';
import { binned, bulkOf, type Domain, domainOf } from './scale.ts';

const BINS = 36;

interface ClassesShown {
  title: string;
  result: string;
  label: string;
  values: readonly number[];
  labels: readonly number[];
  /** Where there are more than two. */
  names?: readonly string[] | undefined;
}

/** What a direction, or the model itself, gives each prompt: one class above the line, the other below; more than two one above another. */
export function classesPanel(box: Box, shown: ClassesShown): Markup {
  if (shown.names) return severalClassesPanel(box, shown, shown.names);
  const of = (label: number) => shown.values.filter((_, index) => shown.labels[index] === label);
  const domain = domainOf(shown.values);
  const axes = { title: shown.title, result: shown.result, x: { domain, label: shown.label } };
  const plot = plotOf(box, axes);
  const middle = (plot.top + plot.bottom) / 2;
  const counts = [binned(of(0), domain, BINS), binned(of(1), domain, BINS)];
  const highest = Math.max(1, ...counts.flat());
  const half = (plot.bottom - plot.top) / 2 - 3;
  const bars = counts.map((heights, label) =>
    heights.map((count, bin) => {
      const height = (count / highest) * half;
      const y = label === 1 ? middle - height : middle;
      return count > 0 && bar(plot, bin, y, height, label === 1 ? 'positive' : 'negative');
    }),
  );
  const means = [0, 1].map((label) => {
    const x = plot.x(mean(of(label)));
    const [y, tip] = label === 1 ? [plot.top, 6] : [plot.bottom, -6];
    return markup`<path class="${label === 1 ? 'positive' : 'negative'}" d="M${x} ${y + tip}l-4 ${-tip}h8z"/>`;
  });
  return framed(box, axes, [
    ...bars.flat(),
    markup`<line class="axis" x1="${plot.left}" x2="${plot.right}" y1="${middle}" y2="${middle}"/>`,
    ...means,
    markup`<text class="tick positive-text" x="${plot.left}" y="${plot.top + 8}">label 1</text>
<text class="tick negative-text" x="${plot.left}" y="${plot.bottom - 4}">label 0</text>`,
  ]);
}

/** The last class at the top. */
function severalClassesPanel(box: Box, shown: ClassesShown, names: readonly string[]): Markup {
  const domain = domainOf(shown.values);
  const axes = { title: shown.title, result: shown.result, x: { domain, label: shown.label } };
  const plot = plotOf(box, axes);
  const room = (plot.bottom - plot.top) / names.length;
  const of = (label: number) => shown.values.filter((_, index) => shown.labels[index] === label);
  const counts = names.map((_, label) => binned(of(label), domain, BINS));
  const highest = Math.max(1, ...counts.flat());
  const rows = counts.map((heights, label) => {
    const floor = plot.bottom - label * room;
    const bars = heights.map((count, bin) => {
      const height = (count / highest) * (room - 3);
      return count > 0 && bar(plot, bin, floor - height, height, label % 2 === 1 ? 'positive' : 'negative');
    });
    return markup`${bars}<line class="axis" x1="${plot.left}" x2="${plot.right}" y1="${floor}" y2="${floor}"/>
<text class="tick" x="${plot.left}" y="${floor - room + 9}">${names[label]}</text>`;
  });
  return framed(box, axes, rows);
}

/** AUROC on held-out rows, against shuffled labels and against random directions. */
export function aurocPanel(box: Box, { decodability }: Evidence): Markup {
  const { auroc, interval, permutation, random } = decodability;
  const domain = domainOf([...permutation.null, ...random.null, auroc, interval.low, interval.high, 0.5, 1], 0.02);
  const axes = {
    title: 'AUROC against chance',
    result: `${formatShort(auroc)} ${formatShortInterval(interval)}, p = ${formatP(permutation.p)}`,
    x: { domain, label: 'AUROC on held-out rows' },
  };
  const plot = plotOf(box, axes);
  return framed(box, axes, [
    ...histogram(plot, permutation.null, domain, 'null'),
    ...histogram(plot, random.null, domain, 'null-outline'),
    ...observed(plot, auroc, interval),
  ]);
}

/** One effect, against what is natural along random directions; below it, a tick for each prompt. */
export function effectPanel(box: Box, title: string, effect: Effect): Markup {
  const each = effect.each.flatMap((part) => (part === null ? [] : [part / effect.whole]));
  const domain = domainOf([...effect.null, ...bulkOf(each), effect.interval.low, effect.interval.high, 0, 1]);
  const axes = {
    title,
    result: `${formatShort(effect.value)} ${formatShortInterval(effect.interval)}, ${stateOf(effect)}`,
    x: { domain, label: 'share of the natural gap' },
  };
  const plot = plotOf(box, axes);
  const ticks = each.map((value) => markup`<path class="each" d="M${plot.x(value)} ${plot.bottom - 1}v-5"/>`);
  const references = [0, 1].map((value) => vertical(plot, value));
  return framed(box, axes, [
    ...references,
    ...histogram(plot, effect.null, domain, 'null'),
    ...ticks,
    ...observed(plot, effect.value, effect.interval),
  ]);
}

/** All interventions in one picture, as shares of what the model does by itself. */
export function forestPanel(box: Box, { steering, interchange, ablation }: Evidence): Markup {
  const rows: { name: string; value: number; interval?: Interval }[] = [
    { name: 'S  steering', value: steering.value, interval: steering.interval },
    { name: 'I  interchange', value: interchange.value, interval: interchange.interval },
    { name: 'N  ablation', value: ablation.value, interval: ablation.interval },
    { name: 'all but the direction', value: interchange.complement },
    { name: 'the whole activation', value: interchange.full.value },
  ];
  const values = rows.flatMap(({ value, interval }) => [value, interval?.low ?? value, interval?.high ?? value]);
  const domain = domainOf([...values, 0, 1]);
  const axes = { title: 'What each intervention moves', x: { domain, label: 'share of the natural gap' } };
  const names = 118;
  const inner = { ...box, x: box.x + names, width: box.width - names };
  const plot = plotOf(inner, axes);
  const step = (plot.bottom - plot.top) / rows.length;
  const drawn = rows.map(({ name, value, interval }, index) => {
    const y = plot.top + (index + 0.5) * step;
    return markup`<text class="tick" x="${box.x + 6}" y="${y + 3.5}">${name}</text>
${interval && markup`<line class="whisker" x1="${plot.x(interval.low)}" x2="${plot.x(interval.high)}" y1="${y}" y2="${y}"/>`}
<circle class="${interval ? 'dot' : 'hollow'}" cx="${plot.x(value)}" cy="${y}" r="4"/>`;
  });
  const references = [0, 0.5, 1].map((value) => vertical(plot, value));
  const title = markup`<text class="title" x="${box.x + 6}" y="${box.y + 12}">${axes.title}</text>`;
  return markup`${title}${framed(inner, { ...axes, title: '' }, [...references, ...drawn])}`;
}

function histogram(plot: Plot, values: readonly number[], domain: Domain, kind: string): Markup[] {
  const counts = binned(values, domain, BINS);
  const highest = Math.max(1, ...counts);
  const room = (plot.bottom - plot.top) * 0.8;
  return counts.flatMap((count, bin) => {
    const height = (count / highest) * room;
    return count > 0 ? [bar(plot, bin, plot.bottom - height, height, kind)] : [];
  });
}

function vertical(plot: Plot, value: number): Markup {
  return markup`<line class="reference" x1="${plot.x(value)}" x2="${plot.x(value)}" y1="${plot.top}" y2="${plot.bottom}"/>`;
}

function bar(plot: Plot, bin: number, y: number, height: number, kind: string): Markup {
  const width = (plot.right - plot.left) / BINS;
  return markup`<rect class="${kind}" x="${plot.left + bin * width}" y="${y}" width="${Math.max(1, width - 0.6)}" height="${height}"/>`;
}

function observed(plot: Plot, value: number, interval: Interval): Markup[] {
  const x = plot.x(value);
  const [from, to] = [plot.x(interval.low), plot.x(interval.high)];
  return [
    markup`<rect class="band" x="${from}" y="${plot.top}" width="${Math.max(0.5, to - from)}" height="${plot.bottom - plot.top}"/>`,
    markup`<line class="observed" x1="${x}" x2="${x}" y1="${plot.top}" y2="${plot.bottom}"/>`,
  ];
}
