/** Draws the sections of a sweep that a reader judges it by: the answer, a map for each direction, the methods, and every cell in a table. A report page and the workbench show the same ones. */

import { choiceBetween } from '../causality/verdict-text.ts';
import { cellState, wholeState } from '../site-sweep/conclude.ts';
import { mapsOf, type SiteMap } from '../site-sweep/maps.ts';
import type { SweepCell, SweepEvidence, SweepRecord } from '../site-sweep/sweep-record.ts';
import { type Markup, markup } from './markup.ts';
import { formatCount, formatInterval, formatNumber, formatP, formatShort } from './numbers.ts';
import { clamp } from './scale.ts';
import { formatPosition, pointName } from './site-names.ts';

const CELL = { width: 64, height: 26 };
const MARGIN = { left: 110, top: 40 };
const TITLES = {
  present: 'The model acts on it here',
  absent: 'No effect at these sites',
  unknown: 'Neither shown nor excluded',
} as const;
const TONES = { present: 'good', absent: 'bad', unknown: 'plain' } as const;

export function sweepSections({ evidence, conclusion }: SweepRecord): Markup {
  const { model, split, multiplicity, target } = evidence;
  return markup`<h1>Where in ${model.id} does it act?</h1>
<p class="lead">${formatCount(evidence.cells.length)} cells (sites × directions) as one question, ${formatCount(split.intervened.length)} held-out prompts, the choice between ${choiceBetween(target)}</p>
<div class="verdict ${TONES[conclusion.state]}"><strong>${TITLES[conclusion.state]}</strong><code>${conclusion.state}</code><p>${conclusion.sentence}</p></div>
<h2>Map</h2>
${mapsOf(evidence).map((map) => mapFigure(map, evidence))}
<h2>Methods</h2>
<p>At each site, the component along the direction, and then the whole activation, is taken from each prompt's counterfactual; what the margin between the target words loses is told as a share of the natural difference, with a 95 % bootstrap interval over pairs, after correction for temperature (the component alone). Where something passes through the site, the component's share is held against what is natural along 99 or more random directions of that site, on ${formatCount(multiplicity.rows)} prompts. The ${formatCount(multiplicity.tests)} cells that were tested share the level ${formatP(multiplicity.level)} of one question by Holm's method. Present, absent and unknown are defined as in the causality protocol, of which this is a screen: it has no steering, no ablation and no guards.</p>
<h2>All cells</h2>
${cellsTable(evidence)}`;
}

/** Rows are layers, the last at the top; columns are positions. */
function mapFigure(map: SiteMap, evidence: SweepEvidence): Markup {
  const width = MARGIN.left + map.positions.length * CELL.width + 8;
  const height = MARGIN.top + map.points.length * CELL.height + 8;
  const columns = map.positions.map(
    (position, i) =>
      markup`<text class="tick" x="${MARGIN.left + (i + 0.5) * CELL.width}" y="${MARGIN.top - 6}" text-anchor="middle">${formatPosition(position)}</text>`,
  );
  const rows = map.rows.toReversed().map((row, down) => {
    const y = MARGIN.top + down * CELL.height;
    const name = pointName(map.points[map.points.length - 1 - down]);
    return markup`<text class="tick" x="${MARGIN.left - 8}" y="${y + 17}" text-anchor="end">${name}</text>${row.map((cell, i) => cellMark(cell, evidence, MARGIN.left + i * CELL.width, y))}`;
  });
  return markup`<figure><div class="scroll map"><svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" role="img" aria-label="Effect of the component by layer and position"><text class="title" x="6" y="14">${map.direction}</text><text class="label" x="${MARGIN.left}" y="14">position</text>${columns}${rows}</svg></div><figcaption>Share of the behaviour that swapping the component moves. Filled: present (blue with the label, orange against it). A dot: absent. A question mark: neither shown nor excluded.</figcaption></figure>`;
}

function cellMark(cell: SweepCell, evidence: SweepEvidence, x: number, y: number): Markup {
  const state = cellState(cell, evidence);
  const { value } = cell.component;
  const opacity = state === 'present' ? 0.15 + 0.6 * clamp(Math.abs(value), 0, 1) : 0;
  const text = state === 'absent' ? '·' : `${state === 'unknown' ? '? ' : ''}${formatShort(value)}`;
  const box = { x: x + 1, y: y + 1, width: CELL.width - 2, height: CELL.height - 2 };
  return markup`<rect class="${value < 0 ? 'negative' : 'positive'}" fill-opacity="${opacity}" x="${box.x}" y="${box.y}" width="${box.width}" height="${box.height}"/><rect fill="none" class="grid" x="${box.x}" y="${box.y}" width="${box.width}" height="${box.height}"/><text x="${x + CELL.width / 2}" y="${y + 17}" text-anchor="middle">${text}</text>`;
}

function cellsTable(evidence: SweepEvidence): Markup {
  const rows = evidence.cells.map((cell) => {
    const { site, direction, component, whole, decodability, test } = cell;
    return markup`<tr><td>${direction}, ${pointName(site)}, ${formatPosition(site.position)}</td><td>${cellState(cell, evidence)}</td><td>${formatNumber(component.value)} ${formatInterval(component.interval)}</td><td>${test ? `${formatP(test.adjusted)} (${formatCount(test.nulls)})` : '–'}</td><td>${formatNumber(whole.value)} ${formatInterval(whole.interval)}, ${wholeState(cell)}</td><td>${formatNumber(decodability.auroc)}</td></tr>`;
  });
  return markup`<div class="scroll"><table><thead><tr><th scope="col">direction, layer, position</th><th scope="col">component</th><th scope="col">share</th><th scope="col">adjusted p (random directions)</th><th scope="col">whole activation</th><th scope="col">AUROC</th></tr></thead><tbody>${rows}</tbody></table></div>`;
}
