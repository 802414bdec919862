/** Makes variants that take a part of a row's activation from its counterfactual partner: the tested component, all but it, or everything. */

import type { Variant } from '../core/engine.ts';
import { missing } from '../core/missing.ts';
import { naturalDisplacements } from './displacements.ts';
import { activationOf, type InterventionSample, partnerOf } from './intervention-sample.ts';
import { vectorIn } from './subspace.ts';
import { addAt, setAt } from './variants.ts';

export function swapAll(sample: InterventionSample, index: number): Variant {
  return setAt(sample.site, index, activationOf(sample, partnerOf(sample, index)));
}

export interface ComponentSwaps {
  component(index: number): Variant;
  /** All but the component. */
  rest(index: number): Variant;
}

export function componentSwaps(sample: InterventionSample): ComponentSwaps {
  const displacement = naturalDisplacements(sample, sample.subspace);
  const vector = (index: number) => vectorIn(sample.subspace, displacement('swapped', index));
  return {
    component: (index) => addAt(sample.site, index, vector(index)),
    rest(index) {
      const own = vector(index);
      const source = activationOf(sample, partnerOf(sample, index));
      return setAt(
        sample.site,
        index,
        source.map((value, i) => value - (own[i] ?? missing('number', i))),
      );
    },
  };
}
