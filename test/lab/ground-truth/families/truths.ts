/** The truths and shares that many families have in common. */

import type { ExpectedShares, Truth } from '../family.ts';

export const USED: Truth = { verdict: 'causal', reasons: ['sufficient-and-necessary'] };
export const PARTLY: Truth = { verdict: 'weak-causal', reasons: ['partial-mediator'] };
export const AGAINST: Truth = { verdict: 'weak-causal', reasons: ['acts-against-label'] };
export const SOFTMAX: Truth = { verdict: 'epiphenomenal-softmax', reasons: ['uniform-rescale'] };
export const LOCKED: Truth = { verdict: 'epiphenomenal-template', reasons: ['site-locked'] };
export const UNREADABLE: Truth = { verdict: 'undetermined', reasons: ['not-decodable'] };

/** The direction carries all of the behaviour. */
export const WHOLE: ExpectedShares = { interchange: [0.9, 1.1], ablation: [0.9, 1.1], through: [0.95, 1.05] };
/** The site carries all of it, and the direction nothing. */
export const NOTHING: ExpectedShares = { interchange: [-0.05, 0.05], ablation: [-0.05, 0.05], through: [0.95, 1.05] };
/** Nothing passes through the site. */
export const DEAD: ExpectedShares = { ...NOTHING, through: [-0.05, 0.05] };

export function part(share: number, margin = 0.06): ExpectedShares {
  const range = [share - margin, share + margin] as const;
  return { interchange: range, ablation: range, through: [0.95, 1.05] };
}
