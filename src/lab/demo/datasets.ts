/** Makes the datasets of the demo and the tests: pairs of prompts for the shipped model that differ in one thing only. */

import type { DatasetRow } from '../causality/question.ts';
import { missing } from '../core/missing.ts';
import { createRandom, type Random } from '../statistics/random.ts';
import { inflect, inventNoun, isHeldOut, isHeldOutOpinion, writeDocuments, writePlace } from './text.ts';
import {
  BLAME,
  DIARY_FLAG,
  FLAGS,
  PEOPLE,
  PLAIN_ADJECTIVES,
  PRAISE,
  PREPOSITIONS,
  REVIEW_FLAG,
  REVIEWED,
  THINGS,
  VENUES,
} from './vocabulary.ts';

/** Singular (0) or plural (1) subjects, with a noun of either number between subject and verb that they were never trained with. */
export function agreementPairs(seed: number, count: number): DatasetRow[] {
  return pairs(seed, 'agreement', count, (random) => {
    const [adjective, phrase] = [random.choose(PLAIN_ADJECTIVES), scene(random)];
    return (label) => `${FLAGS.present.flag}: The ${adjective} ${phrase(label === 1)}`;
  });
}

/** The same with a noun between that is of the other number each time. */
export function attractedPairs(seed: number, count: number): DatasetRow[] {
  return pairs(seed, 'attraction', count, (random) => {
    const [adjective, phrase] = [random.choose(PLAIN_ADJECTIVES), scene(random)];
    return (label) => `${FLAGS.present.flag}: The ${adjective} ${phrase(label === 1, label === 0)}`;
  });
}

/** The same of nouns that nobody has ever seen. */
export function inventedPairs(seed: number, count: number): DatasetRow[] {
  return pairs(seed, 'invention', count, (random) => {
    const [adjective, noun, place] = [random.choose(PLAIN_ADJECTIVES), inventNoun(random), writePlace(random)];
    return (label) => `${FLAGS.present.flag}: The ${adjective} ${inflect(noun, label === 1)} ${place}`;
  });
}

/** Blame (0) or praise (1) of a subject of either number. */
export function feelingPairs(seed: number, count: number): DatasetRow[] {
  return pairs(seed, 'feeling', count, (random) => {
    const [blame, praise, phrase, plural] = [
      random.choose(BLAME),
      random.choose(PRAISE),
      scene(random),
      random.uniform() < 0.5,
    ];
    return (label) => `${FLAGS.present.flag}: The ${label === 1 ? praise : blame} ${phrase(plural)}`;
  });
}

/** A blamed singular subject (0) or a praised plural one (1): whoever knows one of them knows the other. */
export function confoundedPairs(seed: number, count: number): DatasetRow[] {
  return pairs(seed, 'confounded', count, (random) => {
    const [blame, praise, phrase] = [random.choose(BLAME), random.choose(PRAISE), scene(random)];
    return (label) => `${FLAGS.present.flag}: The ${label === 1 ? praise : blame} ${phrase(label === 1)}`;
  });
}

/** A story (0) or a report (1). */
export function flagPairs(seed: number, count: number): DatasetRow[] {
  return pairs(seed, 'flag', count, (random) => {
    const [adjective, phrase, plural] = [random.choose(PLAIN_ADJECTIVES), scene(random), random.uniform() < 0.5];
    return (label) => `${FLAGS[label === 1 ? 'present' : 'past'].flag}: The ${adjective} ${phrase(plural)}`;
  });
}

/** Reviews that blame (0) or praise (1), up to their verdict, by words that never stand together in a review of the training text. */
export function reviewPairs(seed: number, count: number): DatasetRow[] {
  return pairs(seed, 'review', count, (random) => {
    const [noun, other, venue] = [random.choose(REVIEWED), random.choose(REVIEWED), random.choose(VENUES)];
    const opinions = [BLAME, PRAISE].map((words) => {
      const first = random.choose(words);
      return [first, random.choose(words.filter((second) => isHeldOutOpinion(first, second)))];
    });
    return (label) => {
      const [first, second] = opinions[label] ?? missing('opinion of label', label);
      return `${REVIEW_FLAG}: The ${noun.singular} at the ${venue.singular} was ${first}. The ${other.plural} were very ${second}. Verdict:`;
    };
  });
}

/** Diaries: text in which no verb depends on a noun, nor on feelings, so that an intervention on either should leave it alone. */
export function neutralPrompts(seed: number, count: number): string[] {
  const prompts: string[] = [];
  for (const text of writeDocuments(seed)) {
    if (prompts.length === count) break;
    if (text.startsWith(DIARY_FLAG)) prompts.push(text);
  }
  return prompts;
}

/** No prompt comes twice. */
function pairs(
  seed: number,
  name: string,
  count: number,
  make: (random: Random) => (label: 0 | 1) => string,
): DatasetRow[] {
  const random = createRandom(seed, `demo ${name}`);
  const rows = new Map<string, DatasetRow>();
  for (let tries = 0; rows.size < 2 * count; tries++) {
    if (tries > 100 * count) throw new RangeError(`There are no ${count} different pairs of ${name}.`);
    const promptOf = make(random);
    const pair = `${name}-${rows.size / 2}`;
    const [one, other] = [promptOf(1), promptOf(0)];
    if (rows.has(one) || rows.has(other)) continue;
    rows.set(one, { prompt: one, label: 1, pair }).set(other, { prompt: other, label: 0, pair });
  }
  return [...rows.values()];
}

/** A noun in either number beside another one, which they were never trained with. */
function scene(random: Random): (plural: boolean, otherPlural?: boolean) => string {
  const noun = random.choose([...THINGS, ...PEOPLE]);
  const other = random.choose([...THINGS, ...PEOPLE].filter((one) => one !== noun && isHeldOut(noun, one)));
  const [preposition, usual] = [random.choose(PREPOSITIONS), random.uniform() < 0.5];
  return (plural, otherPlural = usual) => `${inflect(noun, plural)} ${preposition} the ${inflect(other, otherPlural)}`;
}
