/** Draws the map of a sweep as text for a terminal: how much of the behaviour the component moves at each site. */

import type { EffectState } from '../causality/effect-states.ts';
import { cellState } from '../site-sweep/conclude.ts';
import { mapsOf, type SiteMap } from '../site-sweep/maps.ts';
import type { SweepEvidence, SweepRecord } from '../site-sweep/sweep-record.ts';
import { formatShort } from './numbers.ts';
import { clamp } from './scale.ts';
import { formatPosition, pointName } from './site-names.ts';
import { painted, shown, type TerminalStyle, wrapped } from './terminal-style.ts';

const NAMES = 12;
const COLUMN = 8;

/** From a little to all of the behaviour. */
const UNICODE_SHADES = '░▒▓█';
const ASCII_SHADES = '.+*#';

export function drawSweep({ evidence, conclusion }: SweepRecord, style: TerminalStyle): string {
  const lines = [
    ...wrapped(shown(conclusion.sentence, style), 0, style),
    ...mapsOf(evidence).flatMap((map) => ['', ...drawMap(map, evidence, style)]),
    '',
    ...wrapped(shown(legend(style), style), 0, style).map((line) => painted(line, 'dim', style)),
  ];
  return `${lines.join('\n')}\n`;
}

/** As many columns as fit side by side, and the others below them. The last layer is at the top. */
function drawMap(map: SiteMap, evidence: SweepEvidence, style: TerminalStyle): string[] {
  const fit = Math.max(1, Math.floor((style.columns - NAMES) / COLUMN));
  const parts = Math.ceil(map.positions.length / fit);
  const title = painted(shown(`${map.direction}, by layer and position`, style), 'bold', style);
  return Array.from({ length: parts }, (_, part) => {
    const columns = map.positions.slice(part * fit, (part + 1) * fit);
    const header = columns.map((position) => shown(formatPosition(position), style).padStart(COLUMN)).join('');
    const rows = map.rows.map((row, index) => {
      const name = shown(pointName(map.points[index]), style).padEnd(NAMES);
      const cells = row.slice(part * fit, (part + 1) * fit).map((cell) => {
        const state = cellState(cell, evidence);
        const paint = state === 'present' ? (cell.component.value < 0 ? 'negative' : 'positive') : 'dim';
        return painted(cellText(state, cell.component.value, style), paint, style);
      });
      return `${name}${cells.join('')}`.trimEnd();
    });
    return [title, `${' '.repeat(NAMES)}${header}`, ...rows.toReversed()];
  }).flat();
}

function cellText(state: EffectState, value: number, style: TerminalStyle): string {
  if (state === 'absent') return shown('·', style).padStart(COLUMN);
  const mark = state === 'unknown' ? '?' : shadeOf(value, style);
  return `${mark} ${shown(formatShort(value), style)}`.padStart(COLUMN);
}

function shadeOf(value: number, style: TerminalStyle): string {
  const shades = style.unicode ? UNICODE_SHADES : ASCII_SHADES;
  return shades.charAt(clamp(Math.floor(Math.abs(value) * shades.length), 0, shades.length - 1));
}

function legend(style: TerminalStyle): string {
  const shades = style.unicode ? UNICODE_SHADES : ASCII_SHADES;
  return (
    `Share of the behaviour that swapping the component moves: ${shades} present, from little to all of it; ` +
    '· absent; ? neither shown nor excluded. Positions count from the end (−1 is the last token) or from 0.'
  );
}
