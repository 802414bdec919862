/** The tasks that models are trained on: the mean of two words' classes, one class beside another that is asked for nowhere, and whether two words are both of one class. */

import type { Random } from '../../../../../src/lab/statistics/random.ts';
import type { Label } from '../../family.ts';
import { type Trained, train } from './transformer.ts';

const PLAIN = ['lamp', 'moss', 'rope', 'salt', 'drum', 'clay', 'wheel', 'coat', 'horn', 'reed'];
const KINDS = {
  /** Animals of the sea and of the land, and things that are dear and cheap: words that the model knows only by what they are trained for. */
  first: {
    1: ['cod', 'eel', 'carp', 'tuna', 'pike', 'ray', 'bass', 'trout', 'squid', 'crab', 'seal', 'whale'],
    0: ['ox', 'goat', 'hen', 'mule', 'ram', 'boar', 'hare', 'mole', 'stag', 'wolf', 'bear', 'lynx'],
  },
  second: {
    1: ['ruby', 'pearl', 'gold', 'silk', 'jade', 'opal', 'satin', 'ivory', 'velvet', 'topaz', 'amber', 'onyx'],
    0: ['mud', 'straw', 'twig', 'chalk', 'sand', 'gravel', 'husk', 'peat', 'slag', 'chaff', 'lint', 'soot'],
  },
} as const;

/** Where the words stand in every prompt. */
export const FIRST = 1;
export const SECOND = 3;

/** The last numbers of the residual stream, in the model with a bystander. */
export const NOTES = 6;

const PLAIN_CHANCE = 0.1;

interface Scheme {
  first: Label;
  second: Label;
}

/** Draws the plain words once, and then writes prompts around two content words of these classes. */
export function frameOf(random: Random, kind: keyof typeof KINDS = 'first'): (scheme: Scheme) => string {
  const [a, b, c] = [random.choose(PLAIN), random.choose(PLAIN), random.choose(PLAIN)];
  const firsts = { 1: random.choose(KINDS.first[1]), 0: random.choose(KINDS.first[0]) };
  const seconds = { 1: random.choose(KINDS[kind][1]), 0: random.choose(KINDS[kind][0]) };
  return ({ first, second }) => [a, firsts[first], b, seconds[second], c, 'is'].join(' ');
}

const caches: Map<number, Trained>[] = [];

export const meanOfTwo = cached((seed) =>
  train(
    {
      name: 'mean of two',
      words: (random) => random.shuffle([...PLAIN, ...KINDS.first[1], ...KINDS.first[0], 'wet', 'dry', 'is']),
      draw(random) {
        const scheme = anyScheme(random);
        const share = (scheme.first + scheme.second) / 2;
        return { prompt: frameOf(random)(scheme), chances: answers({ wet: soft(share), dry: 1 - soft(share) }) };
      },
      steps: 260,
      batch: 16,
      rate: 0.012,
    },
    seed,
  ),
);

export const withBystander = cached((seed) =>
  train(
    {
      name: 'with bystander',
      words: (random) =>
        random.shuffle([
          ...PLAIN,
          ...Object.values(KINDS).flatMap((kind) => [...kind[1], ...kind[0]]),
          'wet',
          'dry',
          'is',
        ]),
      dropped: ['dear', 'cheap'],
      notes: NOTES,
      draw(random) {
        const scheme = anyScheme(random);
        const [wet, dear] = [soft(scheme.first), soft(scheme.second)];
        const chances = { wet: wet / 2, dry: (1 - wet) / 2, dear: dear / 2, cheap: (1 - dear) / 2 };
        return { prompt: frameOf(random, 'second')(scheme), chances: answers(chances) };
      },
      steps: 320,
      batch: 16,
      rate: 0.012,
    },
    seed,
  ),
);

/** Whether both words are of class 1. */
export const bothOfTwo = cached((seed) =>
  train(
    {
      name: 'both of two',
      words: (random) => random.shuffle([...PLAIN, ...KINDS.first[1], ...KINDS.first[0], 'yes', 'no', 'is']),
      draw(random) {
        const scheme = anyScheme(random, 0.62);
        const yes = scheme.first * scheme.second;
        return { prompt: frameOf(random)(scheme), chances: answers({ yes: soft(yes), no: 1 - soft(yes) }) };
      },
      steps: 220,
      batch: 16,
      rate: 0.012,
    },
    seed,
  ),
);

function anyScheme(random: Random, share = 0.5): Scheme {
  return { first: random.uniform() < share ? 1 : 0, second: random.uniform() < share ? 1 : 0 };
}

/** Some of the chance goes to plain words, whatever the prompt says. */
function answers(chances: Record<string, number>): Record<string, number> {
  return Object.fromEntries([
    ...Object.entries(chances).map(([word, chance]) => [word, chance * (1 - PLAIN_CHANCE)]),
    ...PLAIN.map((word) => [word, PLAIN_CHANCE / PLAIN.length]),
  ]);
}

function soft(share: number): number {
  return 0.03 + 0.94 * share;
}

/** A model is trained once for each seed, whatever families ask of it. */
function cached(make: (seed: number) => Trained): (seed: number) => Trained {
  const known = new Map<number, Trained>();
  caches.push(known);
  return (seed) => {
    const trained = known.get(seed) ?? make(seed);
    known.set(seed, trained);
    return trained;
  };
}

/** Has all models trained anew, by which it can be seen that training depends on the seed alone. */
export function forgetTrained(): void {
  for (const known of caches) known.clear();
}
