/** Parses layers as callers write them, and formats them for answers. */

import type { HookPoint } from '../core/engine.ts';
import { formatHookPoint, isInAttention, parseHookPoint, widthAt } from '../core/hook-points.ts';
import type { LabResources } from './resources.ts';

export interface Layer {
  point: HookPoint;
  /** The hook point's name, which the store knows it by. */
  name: string;
  /** A block's number, where it is the residual stream after it. */
  shown: number | string;
  /** The numbers of an activation there; of a pattern, undefined: as many as a prompt has tokens. */
  width: number | undefined;
}

export function layerOf({ model }: Pick<LabResources, 'model'>, given: string | number): Layer {
  const point = parseHookPoint(given, model.layers);
  const name = formatHookPoint(point);
  const width = widthAt(model, point, model.context);
  return { point, name, shown: shownPoint(point), width: point.place === 'pattern' ? undefined : width };
}

export function shownPoint(point: HookPoint): number | string {
  return point.place === 'resid_post' ? point.layer : formatHookPoint(point);
}

/** The numbers of a direction at the layer; rejects a pattern, which has none. */
export function directionWidth({ model }: Pick<LabResources, 'model'>, { point }: Layer): number {
  return widthAt(model, point);
}

/** For messages on widths: where in the model, if it is not as wide as the model. */
export function placeOf({ point, name }: Layer): string {
  return isInAttention(point.place) ? ` at ${name}` : '';
}
