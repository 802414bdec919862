/** Parses and formats names of hook points: TransformerLens' names, and plain integers for the residual stream after a layer. */

import { CuvetteError } from '../../errors.ts';
import type { HookPlace, HookPoint } from './engine.ts';

/** What follows `blocks.{layer}.`; names of TransformerLens 3 stand beside the older ones. */
const PLACES: Record<string, HookPlace> = {
  hook_resid_pre: 'resid_pre',
  hook_attn_out: 'attn_out',
  hook_mlp_out: 'mlp_out',
  hook_resid_post: 'resid_post',
  hook_in: 'resid_pre',
  'attn.hook_out': 'attn_out',
  'mlp.hook_out': 'mlp_out',
  hook_out: 'resid_post',
};

/** A negative layer counts from the model's end. Without `layers`, as for a file that names a place in a model not at hand, any layer from 0 on will do. */
export function parseHookPoint(value: string | number, layers?: number): HookPoint {
  const point = pointOf(value);
  if (!point) throw new CuvetteError('invalid_input', `There is no hook point ${JSON.stringify(value)}. ${ADVICE}`);
  const layer = point.layer < 0 && layers !== undefined ? point.layer + layers : point.layer;
  if (layer < 0 || (layers !== undefined && layer >= layers)) {
    const has = layers === undefined ? 'Layers count from 0.' : `The model has layers 0 to ${layers - 1}.`;
    throw new CuvetteError('invalid_input', `There is no layer ${point.layer}. ${has}`);
  }
  return { layer, place: point.place };
}

export function formatHookPoint(point: HookPoint): string {
  return `blocks.${point.layer}.hook_${point.place}`;
}

const ADVICE =
  'Give a layer as an integer, which means the residual stream after it, or one of ' +
  'blocks.N.hook_resid_pre, blocks.N.hook_attn_out, blocks.N.hook_mlp_out, blocks.N.hook_resid_post.';

function pointOf(value: string | number): HookPoint | undefined {
  const text = String(value).trim();
  if (/^-?\d+$/.test(text)) return { layer: Number(text), place: 'resid_post' };
  const [, layer, name] = /^blocks\.(-?\d+)\.([\w.]+)$/.exec(text) ?? [];
  if (layer === undefined || name === undefined || !Object.hasOwn(PLACES, name)) return undefined;
  const place = PLACES[name];
  return place && { layer: Number(layer), place };
}
