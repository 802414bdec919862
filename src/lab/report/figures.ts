/** Draws the figures of a protocol run: panels side by side, for a page or as an SVG file. */

import type { Evidence } from '../causality/evidence.ts';
import type { ProtocolRecord } from '../causality/verdict.ts';
import type { Box } from './axes.ts';
import { type Content, type Markup, markup, trusted } from './markup.ts';
import { formatShort, formatShortInterval } from './numbers.ts';
import { aurocPanel, classesPanel, effectPanel, forestPanel } from './panels.ts';
import { FIGURE_STYLE } from './styles.ts';
import { changePanel, flipsPanel, scalePanel } from './sweep-panels.ts';
import { titleOf, toneOf, VERDICT_NAMES } from './verdict-names.ts';

const WIDTH = 760;
const HEIGHT = 200;
const GAP = 14;
const ROW = 216;
const WIDE = 1180;

export function decodabilityFigure(evidence: Evidence): Markup {
  const [left, right] = columns(WIDTH, HEIGHT, [5, 4]);
  return svg(WIDTH, HEIGHT, 'Scores of held-out prompts by class, and their AUROC against chance', [
    left && scoresPanel(left, evidence),
    right && aurocPanel(right, evidence),
  ]);
}

export function behaviourFigure(evidence: Evidence): Markup {
  const [left, right] = columns(WIDTH, HEIGHT, [4, 5]);
  return svg(WIDTH, HEIGHT, 'What the model does by itself, and what each intervention moves of it', [
    left && marginsPanel(left, evidence),
    right && forestPanel(right, evidence),
  ]);
}

export function effectsFigure(evidence: Evidence): Markup {
  const boxes = columns(WIDTH, HEIGHT, [1, 1, 1]);
  return svg(WIDTH, HEIGHT, 'Three effects against random directions', effectPanels(boxes, evidence));
}

export function sweepFigure(evidence: Evidence): Markup {
  const [flips, change, scale] = columns(WIDTH, HEIGHT, [1, 1, 1]);
  return svg(WIDTH, HEIGHT, 'The sweep over doses', [
    flips && flipsPanel(flips, evidence),
    change && changePanel(change, evidence),
    scale && scalePanel(scale, evidence),
  ]);
}

/** Several runs in one picture, a row for each: decodable is not the same as causal. */
export function renderSvg(records: readonly ProtocolRecord[]): string {
  const rows = records.map((record, index) => {
    const { evidence, verdict } = record;
    const top = 8 + index * (ROW + 34);
    const [scores, steering, interchange, ablation, flips] = columns(WIDE, HEIGHT, [5, 4, 4, 4, 5], top + 30);
    return markup`<text class="heading" x="6" y="${top + 14}">${titleOf(record)}</text>
<text class="heading ${toneOf(verdict.verdict)}" x="${WIDE - 6}" y="${top + 14}" text-anchor="end">${VERDICT_NAMES[verdict.verdict]} (${verdict.reason})</text>
<line class="grid" x1="6" x2="${WIDE - 6}" y1="${top + 21}" y2="${top + 21}"/>
${scores && scoresPanel(scores, evidence)}${effectPanels([steering, interchange, ablation], evidence)}${flips && flipsPanel(flips, evidence)}`;
  });
  const height = 30 + records.length * (ROW + 34);
  const style = markup`<style>${trusted(FIGURE_STYLE)}</style><rect width="100%" height="100%" style="fill:var(--paper)"/>`;
  const legend = markup`<text class="label" x="6" y="${height - 10}">${LEGEND}</text>`;
  const picture = svg(WIDE, height, 'Evidence of the causality protocol', [style, ...rows, legend]);
  return `<?xml version="1.0" encoding="UTF-8"?>\n${picture.markup}\n`;
}

const LEGEND =
  'Blue line and band: the direction, with its 95 % interval; a tick for each prompt. Grey: what is natural along random directions. ' +
  'Dotted: none and all of what the model does by itself. Hollow: flips toward the target.';

function scoresPanel(box: Box, { decodability, data }: Evidence): Markup {
  const { auroc, interval, scores, labels } = decodability;
  return classesPanel(box, {
    title: 'Decodable? Held-out scores',
    result: `AUROC ${formatShort(auroc)} ${formatShortInterval(interval)}`,
    label: 'projection on the direction',
    values: scores,
    labels,
    names: severalNames(data),
  });
}

function marginsPanel(box: Box, { behaviour, data }: Evidence): Markup {
  return classesPanel(box, {
    title: 'What the model does by itself',
    result: `natural gap G = ${formatShort(behaviour.gap)} ${formatShortInterval(behaviour.interval)}`,
    label: severalNames(data) ? 'logit(own class) \u2212 mean of the others' : 'logit(positive) \u2212 logit(negative)',
    values: behaviour.margins,
    labels: behaviour.labels,
    names: severalNames(data),
  });
}

/** Of more than two classes. */
function severalNames({ classes }: Evidence['data']): string[] | undefined {
  return classes && classes.length > 2 ? classes.map(({ name }) => name) : undefined;
}

function effectPanels(boxes: readonly (Box | undefined)[], { steering, interchange, ablation }: Evidence): Content {
  const [first, second, third] = boxes;
  return [
    first && effectPanel(first, 'Steering S', steering),
    second && effectPanel(second, 'Interchange I', interchange),
    third && effectPanel(third, 'Ablation N', ablation),
  ];
}

function svg(width: number, height: number, name: string, content: Content): Markup {
  return markup`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="${name}">${content}</svg>`;
}

function columns(width: number, height: number, shares: readonly number[], y = 0): Box[] {
  const total = shares.reduce((sum, share) => sum + share, 0);
  const room = width - GAP * (shares.length - 1);
  let x = 0;
  return shares.map((share) => {
    const box = { x, y, width: (room * share) / total, height };
    x += box.width + GAP;
    return box;
  });
}
