/** Defines a family of the ground-truth suite: models of one construction, one for each seed, with a question whose answer follows from it. */

import type { CausalQuestion } from '../../../src/lab/causality/question.ts';
import type { VerdictName } from '../../../src/lab/causality/verdict.ts';
import { createRandom, type Random } from '../../../src/lab/statistics/random.ts';
import type { Along } from './models/basis.ts';
import { type Head, line, takeToQuestion, type Unit } from './models/circuit.ts';
import { makeLexicon, NO, YES } from './models/lexicon.ts';
import { buildToy, roughly, type ToyDesign } from './models/toy-model.ts';
import { type PromptPlan, writeDataset, writeNeutral, writeStructureMatched } from './prompts.ts';

export interface Family {
  name: string;
  truth: Truth;
  /** Why the truth follows from the construction. */
  why: string;
  /** What interventions by hand must show, as far as the construction says. */
  shares?: ExpectedShares;
  make(seed: number): FamilyMember;
}

export interface Truth {
  verdict: VerdictName;
  /** Reason codes that are right; any is, if there are none. */
  reasons?: readonly string[];
}

/** Each from and to, as shares of the natural difference. */
export interface ExpectedShares {
  /** The tested direction's component is taken from a prompt of the other label. */
  interchange: Range;
  /** It becomes the middle between the classes. */
  ablation: Range;
  /** The whole activation is taken from there. */
  through: Range;
}

export type Range = readonly [low: number, high: number];

export interface FamilyMember {
  /** A model's folder as Hugging Face has it. */
  files: Record<string, Uint8Array | string>;
  question: CausalQuestion;
}

export interface ToyFamily extends Omit<Family, 'make'> {
  /** How the model differs from the plain one; heads and units follow from the gain of its answers. */
  model?: Partial<Omit<ToyDesign, 'lexicon' | 'heads' | 'units'>> & { perLabel?: number };
  circuit(gain: number, random: Random): { heads?: readonly Head[]; units?: readonly Unit[] };
  /** All answers' gains are multiplied by it. */
  volume?: number;
  prompts?: Partial<PromptPlan>;
  site?: Partial<CausalQuestion['site']>;
  /** Along named axes; without one, it is fitted. */
  direction?: Along;
  target?: CausalQuestion['target'];
  structureMatched?: boolean;
}

const PAIRS = 32;
const NEUTRAL = 24;

/** What goes along with the concept does not do so to the letter, or there would be no telling them apart. */
export function jitter(random: Random): number {
  return 0.5 + random.uniform();
}

/** The axes on which a concept word tells its label, unless a family says otherwise. */
const CARRIED = ['concept', 'copy', 'correlate', 'temperature'];
/** As many as fit in a head beside them. */
const CARRIED_NOISE = Array.from({ length: 10 }, (_, i) => `noise ${i}`);

/** Takes what concept words carry to the question mark. */
export function gather(layer: number, more: readonly string[] = []): Head {
  return takeToQuestion(layer, 'conceptMark', [...CARRIED, ...more, ...CARRIED_NOISE]);
}

/** The answer is read from the concept alone. */
export function readsConcept(gain: number): { units: Unit[] } {
  return { units: line(1, 'concept', 'out', gain) };
}

/** A share of the answer is read from the concept, the rest from a copy. */
export function readsShare(share: number): (gain: number) => { units: Unit[] } {
  return (gain) => ({
    units: [...line(1, 'concept', 'out', share * gain), ...line(1, 'copy', 'out', (1 - share) * gain)],
  });
}

export function toyFamily(family: ToyFamily): Family {
  const { name, truth, why, shares } = family;
  return { name, truth, why, ...(shares && { shares }), make: (seed) => makeMember(family, seed) };
}

function makeMember(family: ToyFamily, seed: number): FamilyMember {
  const random = createRandom(seed, `family ${family.name}`);
  const lexicon = makeLexicon(family.model?.perLabel);
  const gain = (1.6 + 0.8 * random.uniform()) * (family.volume ?? 1);
  const { heads = [gather(0)], units = [] } = family.circuit(gain, random);
  const design: ToyDesign = { ...PLAIN_MODEL, ...family.model, lexicon, heads, units };
  const toy = buildToy(design, seed);
  const dataset = writeDataset({ pairs: PAIRS, ...family.prompts }, lexicon, random);
  const given = family.direction && toy.direction(family.direction);
  return {
    files: toy.files,
    question: {
      site: { layer: 0, place: 'resid_post', position: -1, ...family.site },
      direction: given
        ? { kind: 'given', vector: roughly(given, random) }
        : { kind: 'fit', method: 'difference-of-means' },
      dataset,
      target: family.target ?? { positive: [YES], negative: [NO] },
      neutralPrompts: writeNeutral(NEUTRAL, lexicon, random),
      ...(family.structureMatched && { structureMatched: writeStructureMatched(PAIRS, lexicon, random) }),
      seed,
    },
  };
}

const PLAIN_MODEL = {
  shape: 'llama',
  width: 128,
  layers: 2,
  noise: 0.15,
  carries: ({ sign, correlate }, random) => ({
    concept: sign * jitter(random),
    copy: sign * jitter(random),
    correlate: correlate * jitter(random),
    temperature: sign * jitter(random),
  }),
} satisfies Partial<ToyDesign>;
