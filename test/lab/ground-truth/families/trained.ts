/**
 * Families of a small model that was trained, on a task whose algorithm is known (scripts/lab/train-known.py): a word is good or bad, the
 * word before it keeps that or turns it round, and the answer says which. What each site carries was found by intervening at all of them.
 */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CausalQuestion, DatasetRow } from '../../../../src/lab/causality/question.ts';
import { createRandom, type Random } from '../../../../src/lab/statistics/random.ts';
import { packageFile } from '../../../../src/package-root.ts';
import type { Family } from '../family.ts';
import { DEAD, LOCKED, USED, WHOLE } from './truths.ts';

const FOLDER = packageFile('test', 'lab', 'fixtures', 'known-task');
const FILES = ['config.json', 'tokenizer.json', 'model.safetensors'];
const GOOD = ['sunny', 'merry', 'gentle', 'bright', 'happy', 'kind', 'sweet', 'shiny'];
const BAD = ['gloomy', 'bitter', 'cruel', 'dark', 'sad', 'mean', 'stern', 'grim'];
const PLAIN = ['the', 'cat', 'dog', 'walks', 'sits', 'near', 'old', 'house', 'tree', 'river', 'and', 'then', 'says'];
const FLAGS = ['report', 'story'];
export const KNOWN_TASK_LAYERS = 3;
/** One plain word stands between the concept word and the question mark. */
export const KNOWN_TASK_WORD = -3;

type Says = (label: 0 | 1, random: Random) => string;
/** The flag, the word that keeps or turns, and the concept word of each label. */
type Contrast = (random: Random) => { flag: Says; modifier: Says; word: Says };

const anyFlag: Contrast = (random) => {
  const flag = random.choose(FLAGS);
  return { flag: () => flag, modifier: () => 'very', word: (label) => random.choose(label === 1 ? GOOD : BAD) };
};

const byModifier: Contrast = (random) => {
  const word = random.choose(GOOD);
  return { ...anyFlag(random), modifier: (label) => (label === 1 ? 'very' : 'not'), word: () => word };
};

const eitherModifier: Contrast = (random) => {
  const modifier = random.choose(['very', 'not']);
  return { ...anyFlag(random), modifier: () => modifier };
};

/** Whether the word is good, where nothing turns it round. */
export function knownTaskQuestion(seed: number, layer: number, position: number, contrast = anyFlag): CausalQuestion {
  const random = createRandom(seed, 'known task');
  return {
    site: { layer, place: 'resid_post', position },
    direction: { kind: 'fit', method: 'difference-of-means' },
    dataset: Array.from({ length: 48 }, (_, pair) => writePair(`pair ${pair}`, contrast(random), random)).flat(),
    target: { positive: ['yes'], negative: ['no'] },
    neutralPrompts: Array.from({ length: 24 }, () => Array.from({ length: 6 }, () => random.choose(PLAIN)).join(' ')),
    seed,
  };
}

function writePair(pair: string, { flag, modifier, word }: ReturnType<Contrast>, random: Random): DatasetRow[] {
  const before = Array.from({ length: 1 + random.integer(3) }, () => random.choose(PLAIN));
  const after = random.choose(PLAIN);
  return ([1, 0] as const).map((label) => ({
    prompt: [flag(label, random), ...before, modifier(label, random), word(label, random), after, '?'].join(' '),
    label,
    pair,
  }));
}

export function knownTaskFiles(): Record<string, Uint8Array> {
  return Object.fromEntries(FILES.map((name) => [name, readFileSync(join(FOLDER, name))]));
}

function trainedFamily(family: Omit<Family, 'make'>, layer: number, position: number, contrast?: Contrast): Family {
  return {
    ...family,
    make: (seed) => ({ files: knownTaskFiles(), question: knownTaskQuestion(seed, layer, position, contrast) }),
  };
}

const LAST = KNOWN_TASK_LAYERS - 1;

export const TRAINED: readonly Family[] = [
  trainedFamily(
    {
      name: 'trained, at the end',
      truth: USED,
      why: 'After the last block, all that the answer depends on is at the question mark, and the classes differ by their answer alone.',
      shares: WHOLE,
    },
    LAST,
    -1,
  ),
  trainedFamily(
    {
      name: 'trained, modifier',
      truth: USED,
      why: 'The same where the word before tells the classes apart, and the concept word is the same in both.',
      shares: WHOLE,
    },
    LAST,
    -1,
    byModifier,
  ),
  trainedFamily(
    {
      name: 'trained, word spent',
      truth: LOCKED,
      why: 'After the last block no token but the last is read, whatever the word still carries.',
      shares: DEAD,
    },
    LAST,
    KNOWN_TASK_WORD,
  ),
  trainedFamily(
    {
      name: 'trained, either modifier',
      truth: { verdict: 'undetermined', reasons: ['behaviour-not-expressed', 'not-decodable'] },
      why: 'Half of the prompts turn the word round: over all, good words are answered with yes as often as bad ones, and there is no behaviour that the word alone causes.',
    },
    LAST,
    -1,
    eitherModifier,
  ),
];
