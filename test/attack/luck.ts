/** Makes random choices that can be repeated, because all of them follow from one seed. */

export interface Luck {
  /** A whole number from 0 to below the limit. */
  below(limit: number): number;
  oneOf<T>(all: readonly T[]): T;
  /** One of those, each as often as its weight says. */
  weighed<T extends { weight: number }>(all: readonly T[]): T;
}

/** The seed of this run: the one that is asked for, or another each time. */
export function seedOf(asked: string | undefined): number {
  return Number(asked ?? Math.floor(Math.random() * 2 ** 31));
}

/** A linear congruential generator of 48 bits, of which the upper ones are used. */
export function createLuck(seed: number): Luck {
  let state = (BigInt(seed) << 16n) ^ 0x5deece66dn;
  const below = (limit: number) => {
    state = (state * 0x5deece66dn + 11n) & ((1n << 48n) - 1n);
    return Number((state >> 16n) % BigInt(limit));
  };
  const oneOf = <T>(all: readonly T[]): T => {
    const one = all[below(all.length)];
    if (one === undefined) throw new Error('There is nothing to choose from.');
    return one;
  };
  return {
    below,
    oneOf,
    weighed<T extends { weight: number }>(all: readonly T[]): T {
      let left = below(all.reduce((sum, { weight }) => sum + weight, 0));
      const found = all.find(({ weight }) => {
        left -= weight;
        return left < 0;
      });
      return found ?? oneOf(all);
    },
  };
}
