import { describe, expect, it } from 'vitest';
import { isHeldOut, isHeldOutOpinion, writeDocuments } from '../../../src/lab/demo/text.ts';
import {
  BLAME,
  type Noun,
  PEOPLE,
  PRAISE,
  REVIEWED,
  THINGS,
  VENUES,
  vocabulary,
} from '../../../src/lab/demo/vocabulary.ts';

function texts(seed: number, count: number): string[] {
  const documents = writeDocuments(seed);
  return Array.from({ length: count }, () => documents.next().value);
}

describe('the text that the shipped model learns from', () => {
  it('is the same for the same seed, and another for another seed', () => {
    expect(texts(1, 50)).toEqual(texts(1, 50));
    expect(texts(1, 50)).not.toEqual(texts(2, 50));
  });

  it('is written in words of the vocabulary, but for invented nouns', () => {
    const known = new Set(vocabulary().map((word) => word.trim()));
    const written = texts(3, 2000).flatMap((text) => text.match(/\w+/g) ?? []);
    const unknown = written.filter((word) => !known.has(word));
    expect(unknown.length).toBeGreaterThan(50);
    expect(unknown.length / written.length).toBeLessThan(0.03);
    expect(unknown.filter((word) => !/^[a-z]{2,12}$/.test(word))).toEqual([]);
  });

  it('has no word twice in its vocabulary', () => {
    expect(new Set(vocabulary()).size).toBe(vocabulary().length);
  });

  it('never has a subject beside a noun that is held out from it', () => {
    const nouns = new Map<string, Noun>(
      [...THINGS, ...PEOPLE, ...REVIEWED, ...VENUES].flatMap((noun) => [
        [noun.singular, noun],
        [noun.plural, noun],
      ]),
    );
    const subjects = texts(4, 8000).flatMap((text) => [
      ...text.matchAll(
        /(?:The|My|Our)(?: \w+)? (\w+) (?:near|behind|beside|under|above|by|with|from|at|that) the(?: \w+)? (\w+) /g,
      ),
    ]);
    const both = subjects.flatMap(([, subject = '', other = '']) => {
      const pair = [nouns.get(subject), nouns.get(other)] as const;
      return pair[0] && pair[1] ? [{ subject: pair[0], other: pair[1] }] : [];
    });
    expect(both.length).toBeGreaterThan(1000);
    expect(both.filter(({ subject, other }) => isHeldOut(subject, other))).toEqual([]);
  });

  it('never has two opinions of a review together that are held out from each other', () => {
    const opinions = texts(5, 3000)
      .filter((text) => text.startsWith('Review'))
      .map((text) => (text.match(/\w+/g) ?? []).filter((word) => PRAISE.includes(word) || BLAME.includes(word)));
    const together = opinions.flatMap((words) => words.slice(1).map((word, i) => [words[i] ?? '', word] as const));
    expect(together.length).toBeGreaterThan(300);
    expect(together.filter(([first, second]) => isHeldOutOpinion(first, second))).toEqual([]);
  });

  it('has verbs that agree with their subjects, with a slip now and then', () => {
    const nouns = [...THINGS, ...PEOPLE];
    const verbs = texts(6, 10_000).flatMap((text) => [...text.matchAll(/(?:The|My|Our) (\w+) (is|are|was|were) /g)]);
    const known = verbs.flatMap(([, subject, verb = '']) => {
      const noun = nouns.find((one) => one.singular === subject || one.plural === subject);
      return noun ? [(noun.plural === subject) === ['are', 'were'].includes(verb)] : [];
    });
    const wrong = known.filter((agrees) => !agrees).length / known.length;
    expect(known.length).toBeGreaterThan(500);
    expect(wrong).toBeGreaterThan(0.01);
    expect(wrong).toBeLessThan(0.08);
  });

  it('keeps reports in the present and stories in the past', () => {
    const written = texts(7, 2000);
    const has = (flag: string, verb: RegExp) => written.some((text) => text.startsWith(flag) && verb.test(text));
    expect([has('Report', / (is|are) /), has('Report', / (was|were) /)]).toEqual([true, false]);
    expect([has('Story', / (is|are) /), has('Story', / (was|were) /)]).toEqual([false, true]);
  });

  it('ends reviews with the verdict of their opinions', () => {
    const reviews = texts(8, 2000).filter((text) => text.startsWith('Review'));
    const wrong = reviews.filter((text) => {
      const praised = [...text.matchAll(/(?:was|were) (not )?(?:very )?(\w+)\./g)].map(
        ([, not, word = '']) => PRAISE.includes(word) === (not === undefined),
      );
      return praised.some((good) => good !== text.endsWith('Verdict: good.'));
    });
    expect(reviews.length).toBeGreaterThan(200);
    expect(wrong).toEqual([]);
  });
});
