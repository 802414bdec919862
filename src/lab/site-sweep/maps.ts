/** Arranges the cells of a sweep as maps, one for each direction: a row for each hook point, a column for each position. */

import type { HookPoint } from '../core/engine.ts';
import { formatHookPoint } from '../core/hook-points.ts';
import { missing } from '../core/missing.ts';
import type { SweepCell, SweepEvidence } from './sweep-record.ts';

export interface SiteMap {
  direction: string;
  points: HookPoint[];
  positions: number[];
  /** By hook point, then by position. */
  rows: SweepCell[][];
}

export function mapsOf({ cells }: Pick<SweepEvidence, 'cells'>): SiteMap[] {
  const points = new Map(cells.map(({ site }) => [formatHookPoint(site), site]));
  const positions = [...new Set(cells.map(({ site }) => site.position))];
  const keyOf = (point: HookPoint, position: number, direction: string) =>
    `${formatHookPoint(point)} ${position} ${direction}`;
  const byKey = new Map(cells.map((cell) => [keyOf(cell.site, cell.site.position, cell.direction), cell]));
  return [...new Set(cells.map(({ direction }) => direction))].map((direction) => ({
    direction,
    points: [...points.values()].map(({ position: _, ...point }) => point),
    positions,
    rows: [...points.values()].map((point) =>
      positions.map((position) => {
        const key = keyOf(point, position, direction);
        return byKey.get(key) ?? missing('cell', key);
      }),
    ),
  }));
}
