/** Reads the target words of a question from a caller's arguments. */

import { CuvetteError } from '../../errors.ts';
import { nameOfClass } from '../causality/classes.ts';
import { classesOf } from '../causality/dataset.ts';
import type { CausalQuestion } from '../causality/question.ts';
import { missing } from '../core/missing.ts';
import { classNumber } from './class-labels.ts';

interface TargetArguments {
  positive_tokens?: string[] | undefined;
  negative_tokens?: string[] | undefined;
  class_tokens?: Record<string, string[]> | undefined;
}

/** Nothing where the caller leaves it to the lab to find them. */
export function targetWords(
  { positive_tokens: positive, negative_tokens: negative, class_tokens: words }: TargetArguments,
  { dataset, classes: names }: Pick<CausalQuestion, 'dataset' | 'classes'>,
): Pick<CausalQuestion, 'target'> {
  const count = classesOf(dataset);
  if (words) {
    if (positive ?? negative) throw bad('Give class_tokens, or positive_tokens and negative_tokens, but not both.');
    return { target: wordsByClass(words, count, names) };
  }
  if (positive === undefined && negative === undefined) return {};
  if (count > 2 || names)
    throw bad(
      'positive_tokens and negative_tokens are for the labels 1 and 0. Give class_tokens: words for each class.',
    );
  if (positive?.length && negative?.length) return { target: { positive, negative } };
  throw bad('Give both positive_tokens and negative_tokens, or neither.');
}

function wordsByClass(
  words: Record<string, string[]>,
  count: number,
  names: readonly string[] | undefined,
): NonNullable<CausalQuestion['target']> {
  const byNumber = new Map(Object.entries(words).map(([name, own]) => [classNumber(name, count, names), own]));
  const [negative = missing('class', 0), positive = missing('class', 1), ...others] = Array.from(
    { length: count },
    (_, label) => {
      const own = byNumber.get(label);
      if (own?.length) return own;
      throw bad(`class_tokens has no words for the class ${nameOfClass(names, label)}. Give some for each class.`);
    },
  );
  return { positive, negative, ...(others.length > 0 && { others }) };
}

function bad(message: string): CuvetteError {
  return new CuvetteError('invalid_input', message);
}
