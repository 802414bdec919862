/** Chooses the target: the next tokens that should tell the classes of prompts apart. */

import { CuvetteError } from '../../errors.ts';
import type { Engine } from '../core/engine.ts';
import { logitOf } from '../core/logits.ts';
import { missing } from '../core/missing.ts';
import { byClass, fromLast, nameOfClass } from './classes.ts';
import type { Evidence } from './evidence.ts';
import type { CausalQuestion } from './question.ts';
import { type Token, tokensOf, tokenWithText } from './single-tokens.ts';

/** The words of the question; else of each class the token whose mean logit differs most from that of the other classes. `logits` are mean logits by class. */
export async function chooseTarget(
  engine: Engine,
  { target, classes: names }: Pick<CausalQuestion, 'target' | 'classes'>,
  logits: readonly Float64Array[],
): Promise<Evidence['target']> {
  if (!target) return targetOf(await Promise.all(mostTelling(logits).map((id) => tokenOf(engine, id))), 'discovery');
  const given = byClass(target);
  checkCovers(given, logits.length, names);
  const likelihood = (token: number) => logits.reduce((total, own) => total + logitOf(own, token), 0);
  const found = await Promise.all(given.map((words) => tokensOf(engine, words, likelihood)));
  checkApart(found, names);
  return targetOf(found, 'given');
}

function targetOf(tokens: readonly Token[][], chosen: Evidence['target']['chosen']): Evidence['target'] {
  const [negative = missing('class', 0), positive = missing('class', 1), ...others] = tokens;
  return { positive, negative, ...(others.length > 0 && { others }), chosen };
}

async function tokenOf(engine: Engine, id: number): Promise<Token[]> {
  return [await tokenWithText(engine, id)];
}

/** Of more than two classes, two may be told by the same token best: the earlier takes the next best. */
function mostTelling(logits: readonly Float64Array[]): number[] {
  const [first = missing('class', 0)] = logits;
  const classes = logits.length;
  const chosen = new Map<number, number>();
  for (const label of fromLast(classes)) {
    const own = logits[label] ?? missing('class', label);
    const advantage = (token: number) =>
      logits.reduce((rest, other) => rest - (other === own ? 0 : logitOf(other, token) / (classes - 1)), 0) +
      logitOf(own, token);
    const taken = classes === 2 ? [] : [...chosen.values()];
    let best: { token: number; by: number } | undefined;
    for (let token = 0; token < first.length; token++) {
      const by = advantage(token);
      if (!taken.includes(token) && (!best || by > best.by)) best = { token, by };
    }
    chosen.set(label, best?.token ?? missing('token for class', label));
  }
  const tokens = logits.map((_, label) => chosen.get(label) ?? missing('token for class', label));
  if (new Set(tokens).size === classes) return tokens;
  throw new CuvetteError(
    'invalid_input',
    'The model says the same after both classes of prompts, to the last digit: no target can be found. Name the target words.',
  );
}

function checkCovers(given: readonly unknown[], classes: number, names: readonly string[] | undefined): void {
  if (given.length === classes) return;
  const lacking = Array.from({ length: classes }, (_, label) => label).slice(given.length);
  throw new CuvetteError(
    'invalid_input',
    given.length < classes
      ? `There are no target words for the class ${lacking.map((label) => nameOfClass(names, label)).join(', ')}. Give words for each of the ${classes} classes, or for none.`
      : `There are target words for ${given.length} classes, and the rows are of ${classes}.`,
  );
}

function checkApart(tokens: readonly Token[][], names: readonly string[] | undefined): void {
  const seen = new Map<number, number>();
  for (const label of fromLast(tokens.length)) {
    for (const { id, text } of tokens[label] ?? missing('class', label)) {
      const other = seen.get(id);
      if (other === undefined) seen.set(id, label);
      else throw overlapping(text, tokens.length, [nameOfClass(names, label), nameOfClass(names, other)]);
    }
  }
}

function overlapping(text: string, classes: number, [one, other]: readonly [string, string]): CuvetteError {
  return new CuvetteError(
    'invalid_input',
    classes === 2
      ? `The target word ${JSON.stringify(text)} is both positive and negative. The two lists must have no token in common.`
      : `The target word ${JSON.stringify(text)} is of class ${one} and of class ${other}. No two classes may have a token in common.`,
  );
}
