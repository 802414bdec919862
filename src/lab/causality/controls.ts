/** Chooses control tokens, which have nothing to do with the target: a change of all logits by one factor shows in them. */

import { CuvetteError } from '../../errors.ts';
import type { Engine } from '../core/engine.ts';
import { logitOf } from '../core/logits.ts';
import { mean } from '../statistics/summary.ts';
import type { Evidence } from './evidence.ts';
import type { CausalQuestion } from './question.ts';
import { singleTokensOf, type Token, tokenWithText } from './single-tokens.ts';

const FEWEST = 30;
const WANTED = 64;

/**
 * The controls that were given, filled up where they are fewer than 30; else tokens with base logits near the target's. Of
 * those near, every second is taken, so that their logits still differ enough to tell a factor.
 */
export async function chooseControls(
  engine: Engine,
  question: Pick<CausalQuestion, 'controls'>,
  target: Evidence['target'],
  logits: Float64Array,
): Promise<Evidence['controls']> {
  const targets = [...target.positive, ...target.negative, ...(target.others ?? []).flat()];
  const taken = new Set(targets.map((token) => token.id));
  const given = await singleTokensOf(engine, question.controls ?? [], (token) => logitOf(logits, token));
  const overlap = given.find((token) => taken.has(token.id));
  if (overlap) {
    throw new CuvetteError(
      'invalid_input',
      `${JSON.stringify(overlap.text)} is both a target and a control. A control must have nothing to do with the question.`,
    );
  }
  if (given.length >= FEWEST) return { tokens: given, chosen: 'given' };

  const words = new Set(targets.map((token) => wordOf(token.text)));
  const tokens: Token[] = [...given];
  const wanted = given.length > 0 ? FEWEST : WANTED;
  const seen = new Set([...taken, ...given.map((token) => token.id)]);
  for (const id of nearest(logits, mean(targets.map((token) => logitOf(logits, token.id))), wanted, seen)) {
    if (tokens.length >= wanted) break;
    const token = await tokenWithText(engine, id);
    // The target's word in other letters is no control.
    if (!words.has(wordOf(token.text))) tokens.push(token);
  }
  return { tokens, chosen: given.length > 0 ? 'given' : 'matched' };
}

/** First every second token of twice as many as wanted, then those between, then the rest. */
function nearest(logits: Float64Array, level: number, wanted: number, seen: ReadonlySet<number>): number[] {
  const distance = (token: number) => Math.abs(logitOf(logits, token) - level);
  const ids = Array.from(logits.keys()).filter((token) => !seen.has(token));
  const ranked = ids.sort((a, b) => distance(a) - distance(b));
  const near = ranked.slice(0, 2 * wanted).sort((a, b) => logitOf(logits, a) - logitOf(logits, b));
  const evens = near.filter((_, i) => i % 2 === 0);
  const odds = near.filter((_, i) => i % 2 === 1);
  return [...evens, ...odds, ...ranked.slice(2 * wanted, 3 * wanted)];
}

function wordOf(text: string): string {
  return text.trim().toLowerCase();
}
