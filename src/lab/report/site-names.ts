/** Names the sites of a sweep, in maps and in tables. */

import type { HookPoint } from '../core/engine.ts';

/** A block's number stands for the residual stream after it. */
export function pointName(point: HookPoint | undefined): string {
  if (!point) return '';
  return point.place === 'resid_post' ? `layer ${point.layer}` : `${point.layer} ${point.place}`;
}

export function formatPosition(position: number): string {
  return position < 0 ? `\u2212${-position}` : String(position);
}
