/**
 * Parses and formats names of hook points: TransformerLens' names, with a head's number in brackets, and plain integers for the residual stream after a
 * layer. Tells how many numbers an activation has there.
 */

import { CuvetteError } from '../../errors.ts';
import type { HookPlace, HookPoint, ModelDescription } from './engine.ts';

/** What follows `blocks.{layer}.`; names of TransformerLens 3 stand beside the older ones. */
const PLACES: Record<string, HookPlace> = {
  hook_resid_pre: 'resid_pre',
  'attn.hook_pattern': 'pattern',
  'attn.hook_z': 'z',
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
  if (!point) throw refused(`There is no hook point ${JSON.stringify(value)}. ${ADVICE}`);
  const layer = point.layer < 0 && layers !== undefined ? point.layer + layers : point.layer;
  if (layer < 0 || (layers !== undefined && layer >= layers)) {
    const has = layers === undefined ? 'Layers count from 0.' : `The model has layers 0 to ${layers - 1}.`;
    throw refused(`There is no layer ${point.layer}. ${has}`);
  }
  return { ...point, layer };
}

export function formatHookPoint({ layer, place, head }: HookPoint): string {
  if (!isInAttention(place)) return `blocks.${layer}.hook_${place}`;
  return `blocks.${layer}.attn.hook_${place}${head === undefined ? '' : `[${head}]`}`;
}

/** The point of a site, which has more fields. */
export function pointOfSite({ layer, place, head }: HookPoint): HookPoint {
  return { layer, place, ...(head !== undefined && { head }) };
}

export function isInAttention(place: HookPlace): place is 'z' | 'pattern' {
  return place === 'z' || place === 'pattern';
}

/** The numbers of an activation at a point; of a pattern, in a prompt of so many tokens. Rejects a head that the model does not have. */
export function widthAt(
  model: Pick<ModelDescription, 'width' | 'heads' | 'headWidth'>,
  point: HookPoint,
  tokens?: number,
): number {
  const { place, head } = point;
  if (!isInAttention(place)) return model.width;
  const { heads, headWidth } = model;
  if (headWidth === undefined)
    throw refused(`${formatHookPoint(point)} cannot be used: the heads of this model cannot be told apart.`);
  if (head !== undefined && !(Number.isInteger(head) && head >= 0 && head < heads))
    throw refused(`There is no head ${head}. The model has heads 0 to ${heads - 1} in each layer.`);
  if (place === 'z') return head === undefined ? heads * headWidth : headWidth;
  if (head === undefined)
    throw refused(`A pattern is of one head. Give its number: ${formatHookPoint({ ...point, head: 0 })}.`);
  if (tokens === undefined)
    throw refused(
      `A row of ${formatHookPoint(point)} is as long as its prompt, and so has no directions. Patterns can be captured, and exchanged by patch_map.`,
    );
  return tokens;
}

const ADVICE =
  'Give a layer as an integer, which means the residual stream after it, or one of ' +
  'blocks.N.hook_resid_pre, blocks.N.hook_attn_out, blocks.N.hook_mlp_out, blocks.N.hook_resid_post, ' +
  'blocks.N.attn.hook_z[HEAD], blocks.N.attn.hook_pattern[HEAD].';

function pointOf(value: string | number): HookPoint | undefined {
  const text = String(value).trim();
  if (/^-?\d+$/.test(text)) return { layer: Number(text), place: 'resid_post' };
  const [, layer, name, head] = /^blocks\.(-?\d+)\.([\w.]+)(?:\[(\d+)\])?$/.exec(text) ?? [];
  if (layer === undefined || name === undefined || !Object.hasOwn(PLACES, name)) return undefined;
  const place = PLACES[name];
  if (!place || (head !== undefined && !isInAttention(place))) return undefined;
  return { layer: Number(layer), place, ...(head !== undefined && { head: Number(head) }) };
}

function refused(message: string): CuvetteError {
  return new CuvetteError('invalid_input', message);
}
