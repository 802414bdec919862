/** Asks about sites of trained models, whose truth follows from the task, from which blocks attend, and from what interventions show. */

import { missing } from '../../../../../src/lab/core/missing.ts';
import { createRandom } from '../../../../../src/lab/statistics/random.ts';
import { mean } from '../../../../../src/lab/statistics/summary.ts';
import type { Example, Family, Label, Made, Question } from '../../family.ts';
import { family } from '../stage.ts';
import { paired } from '../words.ts';
import { bothOfTwo, FIRST, frameOf, meanOfTwo, NOTES, SECOND, withBystander } from './tasks.ts';
import type { Trained } from './transformer.ts';

const WET = { positive: ['wet'], negative: ['dry'] };
const YES = { positive: ['yes'], negative: ['no'] };

export const trainedFamilies: Family[] = [
  family(
    'trained-mean-at-the-end',
    'causal',
    'The end receives the mean of two classes in the only block that attends, and so the model has nothing else to answer by, and this mean has one dimension.',
    (seed, name) => asked(meanOfTwo(seed), bothWords(seed, name, 60), { layer: 1, position: -1 }, WET),
  ),
  family(
    'trained-one-of-two-words',
    'weak-causal',
    'The model has learned to answer by the mean of two words, both of which carry the label here, so that the site at one of them has half of what decides.',
    (seed, name) => asked(meanOfTwo(seed), bothWords(seed, name, 48), { layer: 0, position: FIRST }, WET),
  ),
  family(
    'trained-word-after-reading',
    'epiphenomenal-template',
    'The second word still tells its class after the only block that attends, but nothing can look at it any more.',
    (seed, name) => asked(meanOfTwo(seed), bothWords(seed, name, 30), { layer: 1, position: SECOND }, WET),
  ),
  family(
    'trained-bystander',
    'epiphenomenal-softmax',
    'The second class was learned in numbers that only two words read which the model no longer has, so that the end carries its direction to the last norm and no word reads it.',
    (seed, name) => {
      const model = withBystander(seed);
      const random = createRandom(seed, `third set, dataset ${name}`);
      const direction = bystanderDirection(model, seed);
      const dataset = paired(random, 60, (_, drawn) => {
        const write = frameOf(drawn, 'second');
        return (label) => write({ first: label, second: label });
      });
      return asked(model, dataset, { layer: 2, position: -1 }, WET, direction);
    },
  ),
  family(
    'trained-both-with-one-given',
    'causal',
    'The model has learned to say whether both words are of one class, and as the second is in all prompts, the class at the first word decides alone.',
    (seed, name) => {
      const random = createRandom(seed, `third set, dataset ${name}`);
      const dataset = paired(random, 60, (_, drawn) => {
        const write = frameOf(drawn);
        return (label) => write({ first: label, second: 1 });
      });
      return asked(bothOfTwo(seed), dataset, { layer: 0, position: FIRST }, YES);
    },
  ),
  family(
    'trained-both-needed',
    'weak-causal',
    'The model has learned to say whether both words are of one class, so that the class at the first word ends a yes, but makes none where the second word is of the other class.',
    (seed, name) => asked(bothOfTwo(seed), bothWords(seed, name, 50), { layer: 0, position: FIRST }, YES),
  ),
  family(
    'trained-word-that-does-not-know',
    'undetermined',
    'The label is the class of the first word, which the second word at this site has not yet met and does not go with, so that it cannot be read there.',
    (seed, name) => {
      const random = createRandom(seed, `third set, dataset ${name}`);
      // Both classes of the second word have both labels equally often; no two prompts belong together.
      const dataset = Array.from({ length: 144 }, (_, i): Example => {
        const [label, second]: [Label, Label] = [i % 2 === 0 ? 1 : 0, i % 4 < 2 ? 1 : 0];
        return { prompt: frameOf(random)({ first: label, second }), label };
      });
      return asked(meanOfTwo(seed), dataset, { layer: 0, position: SECOND }, WET);
    },
  ),
];

function asked(
  { files }: Trained,
  dataset: Example[],
  site: Question['site'],
  target: Question['target'],
  direction: Question['direction'] = 'fit',
): Made {
  return { files, question: { dataset, site, target, direction } };
}

function bothWords(seed: number, name: string, count: number): Example[] {
  const random = createRandom(seed, `third set, dataset ${name}`);
  return paired(random, count, (_, drawn) => {
    const write = frameOf(drawn);
    return (label) => write({ first: label, second: label });
  });
}

/** Where the notes at the ends of prompts differ by the second class, with the first balanced, less their mean, which norms take away. */
function bystanderDirection(model: Trained, seed: number): number[] {
  const random = createRandom(seed, 'third set, direction of the bystander');
  const sums = Array.from({ length: 400 }, (_, i) => {
    const [first, second]: [Label, Label] = [i % 2 === 0 ? 1 : 0, i % 4 < 2 ? 1 : 0];
    return { sign: second === 1 ? 1 : -1, row: model.final(frameOf(random, 'second')({ first, second })) };
  });
  const width = sums[0]?.row.length ?? missing('row');
  const difference = Array.from({ length: width }, (_, at) =>
    sums.reduce((sum, { sign, row }) => sum + sign * (row[at] ?? missing('number', at)), 0),
  );
  const level = mean(difference.slice(-NOTES));
  const notes = difference.map((value, at) => (at < width - NOTES ? 0 : value - level));
  return notes.map((value) => value / Math.hypot(...notes));
}
