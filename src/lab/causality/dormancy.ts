/**
 * Measures how much of a direction's effect comes from where natural differences between counterfactuals never lie. A displacement there can wake a
 * pathway that is dormant in all of the data; its effect says nothing about what the model does by itself.
 */

import { missing } from '../core/missing.ts';
import { spanOf } from '../statistics/ridge-span.ts';
import { dot } from '../statistics/vectors.ts';
import { contrastLost, naturalDisplacements } from './displacements.ts';
import { naturalMargins, shareIn } from './effects.ts';
import type { Evidence } from './evidence.ts';
import type { InterventionSample } from './intervention-sample.ts';
import { type MarginReader, partOfMargins } from './logit-margins.ts';
import { vectorIn, withVectors } from './subspace.ts';
import { addAt } from './variants.ts';

/** Divides the swap of the component in two, and runs both. `differences` are those of counterfactuals at the site, each of the model's width. */
export async function measureDormancy(
  reader: MarginReader,
  sample: InterventionSample,
  differences: readonly Float32Array[],
): Promise<Evidence['dormancy']> {
  const { subspace, width } = sample;
  const project = spanOf(differences, width);
  const within = subspace.vectors.map(project);
  const rest = subspace.vectors.map((vector, i) =>
    vector.map((value, axis) => value - (within[i]?.[axis] ?? missing('projection on axis', axis))),
  );
  const parts = [withVectors(subspace, within), withVectors(subspace, rest)] as const;
  const displacement = naturalDisplacements(sample, subspace);
  const count = sample.labels.length;
  const margins = await reader.measure(2 * count, (index) => {
    const row = index % count;
    return addAt(sample.site, row, vectorIn(parts[index < count ? 0 : 1], displacement('swapped', row)));
  });
  const { between } = naturalMargins(reader.base, sample);
  const shareFrom = (from: number) =>
    shareIn(sample, 'dormancy', contrastLost(sample, reader.base, partOfMargins(margins, from, from + count)), between)
      .value;
  const inSpan = subspace.vectors.reduce(
    (total, vector, i) => total + dot(vector, within[i] ?? missing('projection of vector', i)),
    0,
  );
  return {
    within: shareFrom(0),
    rest: shareFrom(count),
    geometric: inSpan / subspace.vectors.length,
    differences: differences.length,
  };
}
