/** Lists the families that may be looked at while the protocol's rules are made. */

import { DATA } from './families/data.ts';
import { DIRECTIONS } from './families/directions.ts';
import { FIRST_FAMILIES } from './families/first.ts';
import { GAIN_AND_SHAPE } from './families/gain-and-shape.ts';
import { READERS } from './families/readers.ts';
import { TRAINED } from './families/trained.ts';
import type { Family } from './family.ts';

export const FAMILIES: readonly Family[] = [
  ...FIRST_FAMILIES,
  ...GAIN_AND_SHAPE,
  ...READERS,
  ...DIRECTIONS,
  ...DATA,
  ...TRAINED,
];

export function familyOf(name: string): Family {
  const family = FAMILIES.find((one) => one.name === name);
  if (family) return family;
  const names = FAMILIES.map((one) => one.name).join(', ');
  throw new RangeError(`There is no family ${name}. There are: ${names}.`);
}
