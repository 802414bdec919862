/** Chooses the control tokens of steering: common words that are single tokens in this model, else tokens about as likely as the target. */

import { singleTokensOf } from '../causality/single-tokens.ts';
import type { Engine } from '../core/engine.ts';
import { logitOf } from '../core/logits.ts';

const FEWEST = 10;
const WANTED = 30;

// biome-ignore format: words, not code.
const COMMON = [
  ' the', ' and', ' of', ' to', ' in', ' a', ' is', ' that', ' for', ' it', ' as', ' was', ' with', ' be', ' by',
  ' on', ' not', ' he', ' his', ' but', ' at', ' are', ' this', ' have', ' from', ' or', ' had', ' an', ' they', ' which',
];

/** The given words, if enough of them are single tokens; `logits` are those of the unmodified model. */
export async function controlTokensFor(
  engine: Engine,
  given: string[] | undefined,
  logits: Float32Array,
  notes: string[],
): Promise<number[]> {
  const found = await singleTokensOf(engine, given ?? COMMON, (token) => logitOf(logits, token));
  const left = given ? given.length - found.length : 0;
  if (left > 0) notes.push(`${left} of the control tokens are not one token in this model, and were left out.`);
  if (found.length >= FEWEST) return found.map(({ id }) => id);
  const ids = new Set(found.map(({ id }) => id));
  for (const id of likelyTokens(logits)) if (ids.size < WANTED) ids.add(id);
  notes.push(
    `Only ${found.length} control tokens are one token here, so the likeliest other tokens were added: ${ids.size} in all.`,
  );
  return [...ids];
}

/** The likeliest first; the one at the top is the target. */
function likelyTokens(logits: Float32Array): number[] {
  return Array.from(logits.keys())
    .sort((a, b) => logitOf(logits, b) - logitOf(logits, a))
    .slice(1, WANTED + FEWEST);
}
