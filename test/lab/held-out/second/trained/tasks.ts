/** Defines the two tasks that models are trained to: to sort by one word, and to count the votes of five. */

import { missing } from '../../../../../src/lab/core/missing.ts';
import type { Random } from '../../../../../src/lab/statistics/random.ts';
import type { Example, Label } from '../../family.ts';
import { singles } from '../../prompts.ts';
import { signOf } from '../../scene.ts';
import { createLexicon, ENDINGS, type Lexicon, PLAIN_WORDS } from '../../vocabulary.ts';
import { secondToken } from '../parts.ts';
import { type Learnt, learnTask, type Task } from './learn-task.ts';

/** How often the answer is any plain word. */
const ANY_WORD = 0.1;

/** The second token says which answers fit; of those, either does. */
export const sorting: Task = {
  name: 'sorting',
  steps: 150,
  lexicon: (random) =>
    createLexicon(random, {
      contentWords: 16,
      targets: { positive: ['yes', 'sure'], negative: ['no', 'never'] },
    }),
  draw(random, { content, targets }) {
    const label: Label = random.uniform() < 0.5 ? 1 : 0;
    const [example] = singles(random, { 1: label, 0: label === 1 ? 0 : 1 }, content, secondToken);
    const prompt = example?.prompt ?? missing('prompt');
    return {
      prompt,
      answers: answers(new Map(targets[label === 1 ? 'positive' : 'negative'].map((word) => [word, 0.5]))),
    };
  },
};

/** Each of five words in a row makes yes likelier or less likely, all by as much. */
export const voting: Task = {
  name: 'voting',
  steps: 350,
  lexicon: (random) => createLexicon(random, { contentWords: 8 }),
  draw(random, lexicon) {
    const votes = VOTERS.map((): Label => (random.uniform() < 0.5 ? 1 : 0));
    const sum = votes.reduce<number>((total, vote) => total + signOf(vote), 0);
    const chance = 1 / (1 + Math.exp(-VOTE * sum));
    const prompt = ballot(random, lexicon, votes);
    return {
      prompt,
      answers: answers(
        new Map([
          ['yes', chance],
          ['no', 1 - chance],
        ]),
      ),
    };
  },
};

/** These chances, and some for all plain words. */
function answers(chances: ReadonlyMap<string, number>): Map<string, number> {
  return new Map([
    ...PLAIN_WORDS.map((word) => [word, ANY_WORD / PLAIN_WORDS.length] as const),
    ...[...chances].map(([word, chance]) => [word, (1 - ANY_WORD) * chance] as const),
  ]);
}

/** By how many logits one vote makes yes likelier than no. */
const VOTE = 0.8;

/** Where the voters stand. */
export const VOTERS = [-7, -6, -5, -4, -3] as const;

/** A prompt in which words vote like this. */
function ballot(random: Random, { content }: Lexicon, votes: readonly Label[]): string {
  const plain = (count: number) => Array.from({ length: count }, () => random.choose(PLAIN_WORDS));
  const voters = votes.map((vote) => random.choose(content[vote]));
  return [...plain(1 + random.integer(3)), ...voters, ...plain(1), random.choose(ENDINGS)].join(' ');
}

/** Ballots for which all vote alike. */
export function unanimous(random: Random, count: number, lexicon: Lexicon): Example[] {
  return Array.from({ length: count }, (_, i) => {
    const label: Label = i % 2 ? 0 : 1;
    return {
      prompt: ballot(
        random,
        lexicon,
        VOTERS.map(() => label),
      ),
      label,
    };
  });
}

/** Ballots for any votes, by what most of them say. */
export function divided(random: Random, count: number, lexicon: Lexicon): Example[] {
  return Array.from({ length: count }, (_, i) => {
    const label: Label = i % 2 ? 0 : 1;
    const against = Math.floor(i / 2) % 3;
    const votes = VOTERS.map((_, voter): Label => (voter < against ? (label === 1 ? 0 : 1) : label));
    return { prompt: ballot(random, lexicon, random.shuffle(votes)), label };
  });
}

const learnt = new Map<string, Learnt>();

/** Trains once for each seed, as several families ask about the same model. */
export function learntModel(task: Task, seed: number): Learnt {
  const key = `${task.name} ${seed}`;
  const model = learnt.get(key) ?? learnTask(task, seed);
  learnt.set(key, model);
  return model;
}
