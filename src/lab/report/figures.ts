/** Draws the figures of a protocol run: panels that stand side by side on a page, or under each other where it is narrow, and one picture as an SVG file. */

import type { Effect, Evidence } from '../causality/evidence.ts';
import type { ProtocolRecord } from '../causality/verdict.ts';
import { missing } from '../core/missing.ts';
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

interface Panel {
  name: string;
  /** Of the width of the figure, beside the others. */
  share: number;
  draw(box: Box): Markup;
}

export function decodabilityFigure(evidence: Evidence): Markup {
  return panels([
    { name: 'Scores of held-out prompts by class', share: 5, draw: (box) => scoresPanel(box, evidence) },
    { name: 'AUROC against chance', share: 4, draw: (box) => aurocPanel(box, evidence) },
  ]);
}

export function behaviourFigure(evidence: Evidence): Markup {
  return panels([
    { name: 'What the model does by itself', share: 4, draw: (box) => marginsPanel(box, evidence) },
    { name: 'What each intervention moves of it', share: 5, draw: (box) => forestPanel(box, evidence) },
  ]);
}

export function effectsFigure({ steering, interchange, ablation }: Evidence): Markup {
  const against = (title: string, effect: Effect) => ({
    name: `${title} against random directions`,
    share: 1,
    draw: (box: Box) => effectPanel(box, title, effect),
  });
  return panels([
    against('Steering S', steering),
    against('Interchange I', interchange),
    against('Ablation N', ablation),
  ]);
}

export function sweepFigure(evidence: Evidence): Markup {
  return panels([
    { name: 'Answers that flip by dose', share: 1, draw: (box) => flipsPanel(box, evidence) },
    { name: 'Change of all logits by dose', share: 1, draw: (box) => changePanel(box, evidence) },
    { name: 'Share of one common scale by dose', share: 1, draw: (box) => scalePanel(box, evidence) },
  ]);
}

/** A picture for each panel, so that a narrow page can put them under each other. */
function panels(all: readonly Panel[]): Markup {
  const boxes = columns(
    WIDTH,
    HEIGHT,
    all.map(({ share }) => share),
  );
  const pictures = all.map(({ name, share, draw }, index) => {
    const { width } = boxes[index] ?? missing('box of panel', index);
    return markup`<div class="share-${share}">${svg(width, HEIGHT, name, draw({ x: 0, y: 0, width, height: HEIGHT }))}</div>`;
  });
  return markup`<div class="panels">${pictures}</div>`;
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
