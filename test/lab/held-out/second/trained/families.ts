/** Families whose model was trained, asked about at several of its sites. */

import { createRandom, type Random } from '../../../../../src/lab/statistics/random.ts';
import type { Example, Family, Made } from '../../family.ts';
import { pairs, singles } from '../../prompts.ts';
import type { Lexicon } from '../../vocabulary.ts';
import { SECOND_TOKEN, secondToken } from '../parts.ts';
import type { Task } from './learn-task.ts';
import { divided, learntModel, sorting, unanimous, VOTERS, voting } from './tasks.ts';

const sortingWord: Family = {
  name: 'trained-sorting-word',
  truth: { verdict: 'causal' },
  why: 'In a model trained to sort by the second token, the site is that token before the only block that attends, and exchanging what tells the labels apart there exchanges the answers.',
  make: (seed) =>
    ask(sorting, seed, { layer: 0, position: SECOND_TOKEN }, (random, { content }) =>
      pairs(random, 48, content, secondToken),
    ),
};

const sortingWordSpent: Family = {
  name: 'trained-sorting-word-spent',
  truth: { verdict: 'epiphenomenal-template' },
  why: 'In a model trained to sort by the second token, the site is that token after the only block that attends, where exchanging all of it changes nothing.',
  make: (seed) =>
    ask(sorting, seed, { layer: 1, position: SECOND_TOKEN }, (random, { content }) =>
      pairs(random, 60, content, secondToken),
    ),
};

const sortingBeforeItIsTold: Family = {
  name: 'trained-sorting-before-it-is-told',
  truth: { verdict: 'undetermined' },
  why: 'In a model trained to sort by the second token, the site is the end before the only block that attends, where nothing of that token can be yet.',
  make: (seed) =>
    ask(sorting, seed, { layer: 0, position: -1 }, (random, { content }) =>
      singles(random, { 1: 70, 0: 70 }, content, secondToken),
    ),
};

const votingCount: Family = {
  name: 'trained-voting-count',
  truth: { verdict: 'causal' },
  why: 'In a model trained to answer by five votes, the site is the end after the only block that attends, and exchanging the count there exchanges the answers.',
  make: (seed) => ask(voting, seed, { layer: 1, position: -1 }, (random, lexicon) => divided(random, 160, lexicon)),
};

const votingOneVoter: Family = {
  name: 'trained-voting-one-voter',
  truth: { verdict: 'weak-causal' },
  why: 'In a model trained to answer by five votes, the site is one of five voters that agree, and exchanging its vote moves the answer by about a fifth.',
  make: (seed) =>
    ask(voting, seed, { layer: 0, position: VOTERS[2] }, (random, lexicon) => unanimous(random, 120, lexicon)),
};

export const trainedFamilies: readonly Family[] = [
  sortingWord,
  sortingWordSpent,
  sortingBeforeItIsTold,
  votingCount,
  votingOneVoter,
];

function ask(
  task: Task,
  seed: number,
  site: { layer: number; position: number },
  data: (random: Random, lexicon: Lexicon) => Example[],
): Made {
  const { files, lexicon } = learntModel(task, seed);
  const dataset = data(createRandom(seed, `held-out ballots ${task.name} ${site.layer} ${site.position}`), lexicon);
  return { files, question: { dataset, site, target: lexicon.targets, direction: 'fit' } };
}
