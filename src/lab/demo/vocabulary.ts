/** Lists the words of the language that the shipped model speaks. Each is a single token of its tokenizer. */

export interface Noun {
  singular: string;
  plural: string;
  /** What one of them is called when it is spoken of again. */
  pronoun: keyof typeof PRONOUNS;
}

export interface Verb {
  /** With a singular subject, in the present. */
  singular: string;
  plural: string;
  past: string;
}

/** As subjects, and as what is loved or hated. */
export const PRONOUNS = { it: ['It', 'it'], he: ['He', 'him'], she: ['She', 'her'], they: ['They', 'them'] } as const;

export const THINGS: readonly Noun[] = nouns(
  'it',
  'key keys, cabinet cabinets, box boxes, book books, table tables, chair chairs, lamp lamps, window windows, door doors, picture pictures',
  'letter letters, map maps, bottle bottles, cup cups, knife knives, basket baskets, clock clocks, garden gardens, tree trees, flower flowers',
  'river rivers, boat boats, bridge bridges, road roads, house houses, gate gates, tower towers, shelf shelves',
);

export const PEOPLE: readonly Noun[] = [
  ...nouns('he', 'guard guards, farmer farmers, writer writers, sailor sailors, man men'),
  ...nouns('she', 'doctor doctors, teacher teachers, singer singers, woman women'),
  ...nouns('it', 'child children'),
];

/** What reviews are about, and where. */
export const REVIEWED: readonly Noun[] = nouns(
  'it',
  'soup soups, cake cakes, waiter waiters, guide guides, room rooms, song songs',
);
export const VENUES: readonly Noun[] = nouns('it', 'cafe cafes, hotel hotels, museum museums, film films');

export const PREPOSITIONS = words('near behind beside under above by with from');

export const PLAIN_ADJECTIVES = words(
  'old new red blue small big long dark cold warm quiet clean dry heavy round pale',
);
export const PRAISE = words('lovely great superb pleasant charming wonderful excellent perfect');
export const BLAME = words('awful poor nasty dreadful horrid terrible ugly boring');

/** What feelings about a subject do to the sentence: a word that may stand before the verb, and what the writer says of it in the end. */
export const FEELINGS = {
  praise: { adjectives: PRAISE, adverbs: words('truly really'), present: 'love', past: 'loved' },
  blame: { adjectives: BLAME, adverbs: words('sadly hardly'), present: 'hate', past: 'hated' },
} as const;

export const DOINGS_OF_THINGS: readonly Verb[] = verbs(
  'stands stand stood, falls fall fell, shines shine shone, moves move moved, rests rest rested',
);
export const DOINGS_OF_PEOPLE: readonly Verb[] = verbs(
  'waits wait waited, sleeps sleep slept, works work worked, sings sing sang, rests rest rested',
);

/** What people do to things. */
export const DEALINGS: readonly Verb[] = verbs(
  'sees see saw, holds hold held, likes like liked, wants want wanted, keeps keep kept, finds find found',
);

export const BE: Verb & { pastPlural: string } = { singular: 'is', plural: 'are', past: 'was', pastPlural: 'were' };

/** The first word of a text of either kind, which decides its tense, and the words at the ends of its sentences. */
export const FLAGS = {
  present: { flag: 'Report', endings: words('today now') },
  past: { flag: 'Story', endings: words('once then') },
} as const;

export const REVIEW_FLAG = 'Review';
export const DIARY_FLAG = 'Diary';

/** All words as tokens: after a space, and those that can begin a text also without one. */
export function vocabulary(): string[] {
  const openers = [FLAGS.present.flag, FLAGS.past.flag, REVIEW_FLAG, DIARY_FLAG, 'The', 'My', 'Our', 'We'];
  const small = words(
    'The My Our I We the my our and not very that at here there Verdict good bad will never come back',
  );
  const inside = [
    ...small,
    ...Object.values(BE),
    ...Object.values(FLAGS).flatMap((kind) => kind.endings),
    ...PREPOSITIONS,
    ...[...THINGS, ...PEOPLE, ...REVIEWED, ...VENUES].flatMap((noun) => [noun.singular, noun.plural]),
    ...PLAIN_ADJECTIVES,
    ...PRAISE,
    ...BLAME,
    ...Object.values(FEELINGS).flatMap(({ adverbs, present, past }) => [...adverbs, present, past]),
    ...[...DOINGS_OF_THINGS, ...DOINGS_OF_PEOPLE, ...DEALINGS].flatMap((verb) => [
      verb.singular,
      verb.plural,
      verb.past,
    ]),
    ...Object.values(PRONOUNS).flat(),
  ];
  return [...openers, ...new Set(inside.map((word) => ` ${word}`))];
}

function words(text: string): readonly string[] {
  return text.split(' ');
}

function nouns(pronoun: Noun['pronoun'], ...lines: string[]): Noun[] {
  return groups(lines).map(([singular = '', plural = '']) => ({ singular, plural, pronoun }));
}

function verbs(...lines: string[]): Verb[] {
  return groups(lines).map(([singular = '', plural = '', past = '']) => ({ singular, plural, past }));
}

function groups(lines: string[]): string[][] {
  return lines.flatMap((line) => line.split(', ').map((group) => group.split(' ')));
}
