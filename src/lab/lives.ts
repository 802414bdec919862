/** Numbers for the lives of a Python elsewhere: whoever has talked to one knows by its number whether it is still the same. */

import { randomInt } from 'node:crypto';

/** Lives of one Python, which no other counts; and how many first ones there are to draw from. */
const LIVES = 2 ** 16;
const MOST_STARTS = 2 ** 36;

export function firstLife(): number {
  return randomInt(MOST_STARTS) * LIVES;
}
