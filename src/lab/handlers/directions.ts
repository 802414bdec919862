/** Finds a direction to steer along: a probe's, or a row of an SAE's decoder. */

import { CuvetteError } from '../../errors.ts';
import type { LabContext } from '../core/lab.ts';
import { hashOfNumbers } from '../core/manifest.ts';
import { norm } from '../statistics/vectors.ts';
import { directionWidth, type Layer, placeOf } from './layers.ts';
import type { LabResources } from './resources.ts';

export interface Direction {
  vector: Float32Array;
  length: number;
  hash: string;
  /** The distance between the class means along it, if known. */
  swing: number | undefined;
}

/** Takes a probe's id, or `SAE#FEATURE`. */
export async function findDirection(
  resources: LabResources,
  id: string,
  layer: Layer,
  context: LabContext,
): Promise<Direction> {
  const [, sae, feature] = /^(.+)#(\d+)$/.exec(id) ?? [];
  if (sae === undefined) {
    const { direction, training } = await resources.store.probes.get(id);
    return checked(resources, id, layer, direction, training?.swing);
  }
  const { decoder, features, output, width } = await resources.openSae(sae, context);
  const row = Number(feature);
  if (row >= features)
    throw new CuvetteError('invalid_input', `The SAE ${sae} has features 0 to ${features - 1}, and no ${row}.`);
  const size = output?.width ?? width;
  return checked(resources, id, layer, decoder.slice(row * size, (row + 1) * size), undefined);
}

function checked(
  resources: LabResources,
  id: string,
  layer: Layer,
  vector: Float32Array,
  swing: number | undefined,
): Direction {
  const width = directionWidth(resources, layer);
  const length = norm(vector);
  if (vector.length !== width)
    throw new CuvetteError(
      'invalid_input',
      `The direction ${id} has ${vector.length} numbers, and ${resources.model.id} is ${width} wide${placeOf(layer)}. It is of another model or place.`,
    );
  if (!(length > 0) || !Number.isFinite(length))
    throw new CuvetteError('invalid_input', `The direction ${id} is zero, or has numbers that are not finite.`);
  return { vector, length, hash: hashOfNumbers(vector), swing };
}
