/** Parses layers as callers write them, and formats them for answers. */

import type { HookPoint } from '../core/engine.ts';
import { formatHookPoint, parseHookPoint } from '../core/hook-points.ts';
import type { LabResources } from './resources.ts';

export interface Layer {
  point: HookPoint;
  /** The hook point's name, which the store knows it by. */
  name: string;
  /** A block's number, where it is the residual stream after it. */
  shown: number | string;
}

export function layerOf({ model }: Pick<LabResources, 'model'>, given: string | number): Layer {
  const point = parseHookPoint(given, model.layers);
  const name = formatHookPoint(point);
  return { point, name, shown: shownPoint(point) };
}

export function shownPoint(point: HookPoint): number | string {
  return point.place === 'resid_post' ? point.layer : formatHookPoint(point);
}
