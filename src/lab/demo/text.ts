/**
 * Writes the text that the shipped model learns from: reports in the present and stories in the past, whose verbs agree with
 * subjects over nouns that stand between, and reviews that end in a verdict. The same seed writes the same text.
 */

import { createRandom, type Random } from '../statistics/random.ts';
import {
  BE,
  BLAME,
  DEALINGS,
  DIARY_FLAG,
  DOINGS_OF_PEOPLE,
  DOINGS_OF_THINGS,
  FEELINGS,
  FLAGS,
  type Noun,
  PEOPLE,
  PLAIN_ADJECTIVES,
  PRAISE,
  PREPOSITIONS,
  PRONOUNS,
  REVIEW_FLAG,
  REVIEWED,
  THINGS,
  VENUES,
  type Verb,
  vocabulary,
} from './vocabulary.ts';

type Tense = keyof typeof FLAGS;

interface Subject {
  text: string;
  noun: Noun;
  plural: boolean;
  feeling: keyof typeof FEELINGS | undefined;
}

/** Without end: each a text of its own, as short as a sentence and as long as a paragraph. */
export function* writeDocuments(seed: number): Generator<string> {
  const random = createRandom(seed, 'demo text');
  while (true) yield random.choose(KINDS)(random);
}

/** Subjects and the nouns after them that never stand together in the text, so that a test of agreement is on sentences the model has not seen. */
export function isHeldOut(subject: Noun, other: Noun): boolean {
  return (ALL_NOUNS.indexOf(subject) + 2 * ALL_NOUNS.indexOf(other)) % 7 === 0;
}

/** The same for one opinion after another in a review. */
export function isHeldOutOpinion(first: string, second: string): boolean {
  return [PRAISE, BLAME].some(
    (words) =>
      words.includes(first) && words.includes(second) && (words.indexOf(first) + 2 * words.indexOf(second)) % 5 === 0,
  );
}

const KINDS = [writeStatements, writeStatements, writeStatements, writeReview, writeDiary];

/** Now and then a writer slips, and the verb agrees with nothing: so the model is sure of its verbs, but never beyond all doubt. */
const SLIPS = 0.04;

/** Sounds of invented nouns. */
const ONSETS = 'b br c ch cl d dr f fl g gr h j k l m n p pl pr r s sh sp st t th tr v w'.split(' ');
const VOWELS = 'a e i o u ai ea ee oo ou'.split(' ');
const CODAS = ' b ck d g l ll m n nd nt p r rd rn t y'.split(' ');

/** How often a noun is invented. */
const INVENTIONS = 0.08;

const KNOWN = new Set(vocabulary());
const ALL_NOUNS = [...THINGS, ...PEOPLE, ...REVIEWED, ...VENUES];

function writeStatements(random: Random): string {
  const tense: Tense = random.uniform() < 0.5 ? 'present' : 'past';
  const sentences: string[] = [];
  const count = 1 + random.integer(4);
  while (sentences.length < count) {
    const subject = writeSubject(random, tense);
    sentences.push(`${subject.text} ${writePredicate(random, tense, subject)}.`);
    if (random.uniform() < 0.35) sentences.push(`${pronoun(subject, 0)} ${writeState(random, tense, subject.plural)}.`);
  }
  const flag = random.uniform() < 0.7 ? `${FLAGS[tense].flag}: ` : '';
  return flag + sentences.join(' ');
}

function writeSubject(random: Random, tense: Tense): Subject {
  const plural = random.uniform() < 0.5;
  const noun = random.uniform() < INVENTIONS ? inventNoun(random) : random.choose([...THINGS, ...PEOPLE]);
  const determiner = random.uniform() < 0.7 ? 'The' : random.choose(['My', 'Our']);
  const dice = random.uniform();
  const feeling = dice < 0.2 ? 'praise' : dice < 0.4 ? 'blame' : undefined;
  const adjectives = feeling === undefined ? PLAIN_ADJECTIVES : FEELINGS[feeling].adjectives;
  const adjective = dice < 0.6 ? random.choose(adjectives) : undefined;
  const parts = [determiner, adjective, inflect(noun, plural), writeModifier(random, tense, noun)];
  return { text: parts.filter((part) => part !== undefined).join(' '), noun, plural, feeling };
}

/** What stands between a subject and its verb. */
function writeModifier(random: Random, tense: Tense, subject: Noun): string | undefined {
  const dice = random.uniform();
  if (dice < 0.25) return undefined;
  if (dice < 0.7) return writePlace(random, subject);
  if (dice < 0.8) return `${writePlace(random, subject)} ${writePlace(random, subject)}`;
  const plural = random.uniform() < 0.5;
  const person = otherNoun(random, PEOPLE, subject);
  return `that the ${inflect(person, plural)} ${conjugate(random.choose(DEALINGS), tense, plural)}`;
}

/** What something is beside; with a subject, never what is held out from it. */
export function writePlace(random: Random, subject?: Noun): string {
  const isInvented = random.uniform() < INVENTIONS;
  const noun = isInvented ? inventNoun(random) : otherNoun(random, [...THINGS, ...PEOPLE], subject);
  const adjective = random.uniform() < 0.2 ? `${random.choose(PLAIN_ADJECTIVES)} ` : '';
  return `${random.choose(PREPOSITIONS)} the ${adjective}${inflect(noun, random.uniform() < 0.5)}`;
}

function writePredicate(random: Random, tense: Tense, subject: Subject): string {
  const plural = random.uniform() < SLIPS ? !subject.plural : subject.plural;
  const isState = random.uniform() < 0.65;
  const action = isState ? writeState(random, tense, plural) : writeDoing(random, tense, subject.noun, plural);
  if (subject.feeling === undefined) {
    return random.uniform() < 0.4 ? `${action} ${random.choose(FLAGS[tense].endings)}` : action;
  }
  const feeling = FEELINGS[subject.feeling];
  const adverb = random.uniform() < 0.4 ? `${random.choose(feeling.adverbs)} ` : '';
  const end = random.uniform() < 0.6 ? ` and I ${feeling[tense]} ${pronoun(subject, 1)}` : '';
  return `${adverb}${action}${end}`;
}

function writeState(random: Random, tense: Tense, plural: boolean): string {
  const dice = random.uniform();
  const degree = dice < 0.1 ? 'not ' : dice < 0.25 ? 'very ' : '';
  const what = dice > 0.85 ? random.choose(['here', 'there']) : random.choose(PLAIN_ADJECTIVES);
  return `${copula(tense, plural)} ${degree}${what}`;
}

function writeDoing(random: Random, tense: Tense, noun: Noun, plural: boolean): string {
  const doings = PEOPLE.includes(noun) ? DOINGS_OF_PEOPLE : DOINGS_OF_THINGS;
  const verb = conjugate(random.choose(doings), tense, plural);
  return random.uniform() < 0.5 ? verb : `${verb} ${random.choose(['here', 'there'])}`;
}

/** Of those who write of themselves: no verb depends on a noun. */
function writeDiary(random: Random): string {
  const tense: Tense = random.uniform() < 0.5 ? 'present' : 'past';
  const count = 1 + random.integer(4);
  const sentences = Array.from({ length: count }, () => {
    const who = random.choose(['I', 'We']);
    const ending = random.uniform() < 0.3 ? ` ${random.choose(FLAGS[tense].endings)}` : '';
    return `${who} ${random.uniform() < 0.5 ? writeOwnDoing(random, tense) : writeOwnDealing(random, tense, who)}${ending}.`;
  });
  return `${random.uniform() < 0.8 ? `${DIARY_FLAG}: ` : ''}${sentences.join(' ')}`;
}

function writeOwnDoing(random: Random, tense: Tense): string {
  const verb = ownVerb(random.choose(DOINGS_OF_PEOPLE), tense);
  const dice = random.uniform();
  if (dice < 0.3) return verb;
  if (dice < 0.6) return `${verb} ${random.choose(['here', 'there'])}`;
  return `${verb} ${random.choose(PREPOSITIONS)} the ${inflect(random.choose(THINGS), random.uniform() < 0.5)}`;
}

function writeOwnDealing(random: Random, tense: Tense, who: string): string {
  const [determiner, noun] = [
    random.choose(['the', who === 'I' ? 'my' : 'our']),
    random.choose([...THINGS, ...PEOPLE]),
  ];
  const adjective = random.uniform() < 0.4 ? `${random.choose(PLAIN_ADJECTIVES)} ` : '';
  return `${ownVerb(random.choose(DEALINGS), tense)} ${determiner} ${adjective}${inflect(noun, random.uniform() < 0.5)}`;
}

function writeReview(random: Random): string {
  const good = random.uniform() < 0.5;
  const sentences: string[] = [];
  const count = 1 + random.integer(3);
  let last = '';
  while (sentences.length < count) {
    const negated = random.uniform() < 0.15;
    const words = good === negated ? BLAME : PRAISE;
    last = random.choose(words.filter((word) => !isHeldOutOpinion(last, word)));
    sentences.push(writeOpinion(random, negated, last));
  }
  if (random.uniform() < 0.4) sentences.push(good ? 'We will come back.' : 'We will never come back.');
  return `${REVIEW_FLAG}: ${sentences.join(' ')} Verdict: ${good ? 'good' : 'bad'}.`;
}

function writeOpinion(random: Random, negated: boolean, adjective: string): string {
  const plural = random.uniform() < 0.5;
  const noun = random.choose(REVIEWED);
  const venue = random.uniform() < 0.5 ? ` at the ${otherNoun(random, VENUES, noun).singular}` : '';
  const degree = negated ? 'not ' : random.uniform() < 0.2 ? 'very ' : '';
  return `The ${inflect(noun, plural)}${venue} ${copula('past', plural)} ${degree}${adjective}.`;
}

/** A word that nobody knows, so that the model learns to read letters: its plural ends in s. */
export function inventNoun(random: Random): Noun {
  const syllables = Array.from({ length: 1 + random.integer(2) }, () => random.choose(ONSETS) + random.choose(VOWELS));
  const singular = syllables.join('') + random.choose(CODAS);
  if (KNOWN.has(` ${singular}`) || KNOWN.has(` ${singular}s`)) return inventNoun(random);
  return { singular, plural: `${singular}s`, pronoun: 'it' };
}

function otherNoun(random: Random, nouns: readonly Noun[], subject: Noun | undefined): Noun {
  return random.choose(
    nouns.filter((noun) => subject === undefined || (noun !== subject && !isHeldOut(subject, noun))),
  );
}

export function inflect(noun: Noun, plural: boolean): string {
  return plural ? noun.plural : noun.singular;
}

function pronoun(subject: Subject, use: 0 | 1): string {
  return PRONOUNS[subject.plural ? 'they' : subject.noun.pronoun][use];
}

function conjugate(verb: Verb, tense: Tense, plural: boolean): string {
  if (tense === 'past') return verb.past;
  return plural ? verb.plural : verb.singular;
}

function ownVerb(verb: Verb, tense: Tense): string {
  return tense === 'past' ? verb.past : verb.plural;
}

function copula(tense: Tense, plural: boolean): string {
  return tense === 'past' && plural ? BE.pastPlural : conjugate(BE, tense, plural);
}
