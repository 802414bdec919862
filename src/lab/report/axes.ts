/** Draws the frame of a figure: a box with a title and axes with ticks, and maps values to coordinates in it. */

import { type Content, type Markup, markup } from './markup.ts';
import { clamp, type Domain, linear, ticksOf } from './scale.ts';

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Axes {
  /** Above the picture: what is seen. */
  title: string;
  /** Below the title: the result in numbers. */
  result?: string;
  x: { domain: Domain; label: string; ticks?: readonly number[]; written?(value: number): string };
  /** Without it, only heights are compared, and no scale is drawn. */
  y?: { domain: Domain; label: string; written?(value: number): string };
}

export interface Plot {
  x(value: number): number;
  y(value: number): number;
  left: number;
  right: number;
  top: number;
  bottom: number;
}

const ABOVE = 38;
const BELOW = 34;
const BESIDE = 40;

/** Where things are to be drawn, given where the picture is. */
export function plotOf(box: Box, axes: Axes): Plot {
  const left = box.x + (axes.y ? BESIDE : 6);
  const right = box.x + box.width - 6;
  const top = box.y + ABOVE;
  const bottom = box.y + box.height - BELOW;
  const x = linear(axes.x.domain, left, right);
  const y = linear(axes.y?.domain ?? { low: 0, high: 1 }, bottom, top);
  return {
    x: (value) => clamp(x(value), left, right),
    y: (value) => clamp(y(value), top, bottom),
    left,
    right,
    top,
    bottom,
  };
}

/** The axes, with what was drawn between them. */
export function framed(box: Box, axes: Axes, content: Content): Markup {
  const plot = plotOf(box, axes);
  const written = axes.x.written ?? plain;
  const ticks = (axes.x.ticks ?? ticksOf(axes.x.domain, Math.max(2, (plot.right - plot.left) / 48))).map(
    (value) => markup`
<line class="axis" x1="${plot.x(value)}" x2="${plot.x(value)}" y1="${plot.bottom}" y2="${plot.bottom + 4}"/>
<text class="tick" x="${plot.x(value)}" y="${plot.bottom + 15}" text-anchor="middle">${written(value)}</text>`,
  );
  return markup`<g>
<text class="title" x="${box.x + 6}" y="${box.y + 12}">${axes.title}</text>
<text class="result" x="${box.x + 6}" y="${box.y + 27}">${axes.result}</text>
${axes.y && verticalAxis(plot, axes.y)}
${content}
<line class="axis" x1="${plot.left}" x2="${plot.right}" y1="${plot.bottom}" y2="${plot.bottom}"/>${ticks}
<text class="label" x="${(plot.left + plot.right) / 2}" y="${plot.bottom + 30}" text-anchor="middle">${axes.x.label}</text>
</g>`;
}

function verticalAxis(plot: Plot, { domain, label, written = plain }: NonNullable<Axes['y']>): Markup {
  const ticks = ticksOf(domain, 4).map(
    (value) => markup`
<line class="grid" x1="${plot.left}" x2="${plot.right}" y1="${plot.y(value)}" y2="${plot.y(value)}"/>
<text class="tick" x="${plot.left - 5}" y="${plot.y(value) + 3.5}" text-anchor="end">${written(value)}</text>`,
  );
  const middle = (plot.top + plot.bottom) / 2;
  return markup`${ticks}
<text class="label" x="${plot.left - 34}" y="${middle}" text-anchor="middle" transform="rotate(-90 ${plot.left - 34} ${middle})">${label}</text>`;
}

function plain(value: number): string {
  return String(value).replace('-', '\u2212');
}
