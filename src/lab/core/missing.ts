/** Throws where a required value is absent, so that a missing logit, reading, weight or label is never taken for a number. */

import { CuvetteError } from '../../errors.ts';

/** For use after `??`, which calls it only if the value is absent: `logits[token] ?? missing('logit of token', token)`. */
export function missing(what: string, which?: number | string): never {
  const name = which === undefined ? what : `${what} ${which}`;
  throw new CuvetteError(
    'internal',
    `The lab has no ${name}, and computes no result without it. This is a defect of Cuvette or of the engine: report this message.`,
  );
}

/** The values at the given indices, each of which must be there. */
export function pick<T>(values: ArrayLike<T>, indices: readonly number[], what: string): T[] {
  return indices.map((index) => values[index] ?? missing(what, index));
}
