/** Draws the panels of the dose sweep: how often answers flip, how much the logits change, and how much of that is one common factor. */

import type { SweepRow } from '../causality/common-evidence.ts';
import type { Evidence } from '../causality/evidence.ts';
import type { Interval } from '../statistics/bootstrap.ts';
import { type Axes, type Box, framed, type Plot, plotOf } from './axes.ts';
import { type Markup, markup } from './markup.ts';
import { domainOf } from './scale.ts';

interface Point {
  x: number;
  y: number;
  interval?: Interval;
}

interface Curve {
  kind: 'direction' | 'toward' | 'random';
  points: Point[];
}

interface Shown {
  title: string;
  range: Interval;
  curves: Curve[];
  /** What the decision looks at. */
  threshold?: number;
  /** Without a dose there is nothing to see, so curves pass through the origin. */
  fromNothing: boolean;
}

export function flipsPanel(box: Box, { sweep }: Evidence): Markup {
  const point = ({ dose, flips }: SweepRow): Point => ({ x: dose.norm, y: flips.rate, interval: flips.interval });
  const toward = ({ dose, towardTarget }: SweepRow): Point => ({ x: dose.norm, y: towardTarget.rate });
  const curves: Curve[] = [
    { kind: 'random', points: sweep.random.map(point) },
    { kind: 'toward', points: sweep.rows.map(toward) },
    { kind: 'direction', points: sweep.rows.map(point) },
  ];
  return curvesPanel(box, { title: 'Answers that flip', range: { low: 0, high: 1 }, curves, fromNothing: true });
}

export function changePanel(box: Box, { sweep }: Evidence): Markup {
  const curves = compared(sweep, (row) => row.change);
  const highest = Math.max(0.05, ...curves.flatMap(({ points }) => points.map(({ y }) => y)));
  const range = { low: 0, high: highest * 1.05 };
  return curvesPanel(box, { title: 'Change of all logits', range, curves, threshold: 0.02, fromNothing: true });
}

export function scalePanel(box: Box, { sweep }: Evidence): Markup {
  const curves = compared(sweep, (row) => row.commonScale);
  const range = { low: 0, high: 1 };
  return curvesPanel(box, { title: 'Of it, one common scale', range, curves, threshold: 0.5, fromNothing: false });
}

function compared(sweep: Evidence['sweep'], value: (row: SweepRow) => number): Curve[] {
  const point = (row: SweepRow): Point => ({ x: row.dose.norm, y: value(row) });
  return [
    { kind: 'random', points: sweep.random.map(point) },
    { kind: 'direction', points: sweep.rows.map(point) },
  ];
}

function curvesPanel(box: Box, { title, range, curves, threshold, fromNothing }: Shown): Markup {
  const doses = curves.flatMap(({ points }) => points.map(({ x }) => x));
  const axes: Axes = {
    title,
    x: { domain: domainOf([...doses, 0], 0.06), label: 'dose, in lengths of the activation' },
    y: { domain: range, label: 'share' },
  };
  const plot = plotOf(box, axes);
  const limit =
    threshold !== undefined &&
    markup`<line class="threshold" x1="${plot.left}" x2="${plot.right}" y1="${plot.y(threshold)}" y2="${plot.y(threshold)}"/>`;
  return framed(box, axes, [limit, ...curves.map((curve) => drawn(plot, curve, fromNothing))]);
}

function drawn(plot: Plot, { kind, points }: Curve, fromNothing: boolean): Markup {
  const ends = fromNothing ? [...points, { x: 0, y: 0 }] : points;
  const line = ends.toSorted((a, b) => a.x - b.x).map(({ x, y }) => markup`${plot.x(x)},${plot.y(y)} `);
  const whiskers = points.map(
    ({ x, interval }) =>
      interval &&
      markup`<line class="whisker ${kind}-line" x1="${plot.x(x)}" x2="${plot.x(x)}" y1="${plot.y(interval.low)}" y2="${plot.y(interval.high)}"/>`,
  );
  const dots = points.map(
    ({ x, y }) => markup`<circle class="${kind}-dot" cx="${plot.x(x)}" cy="${plot.y(y)}" r="3.2"/>`,
  );
  return markup`<polyline class="curve ${kind}-line" points="${line}"/>${whiskers}${dots}`;
}
