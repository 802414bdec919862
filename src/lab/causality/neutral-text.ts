/** Measures what a dose does to neutral text: the perplexity ratio and the KL divergence. In the protocol this is told as specificity and decides nothing. */

import type { HookPoint, Positions, Variant } from '../core/engine.ts';
import { pointOfSite } from '../core/hook-points.ts';
import { missing } from '../core/missing.ts';
import { createRandom } from '../statistics/random.ts';
import { mean } from '../statistics/summary.ts';
import { scaled } from '../statistics/vectors.ts';
import type { Dose } from './common-evidence.ts';
import type { Evidence } from './evidence.ts';
import { type ProtocolRun, portions, runChecked, surpriseOf } from './readings.ts';

const RANDOM_DIRECTIONS = 3;

export interface NeutralPlace extends HookPoint {
  position?: number;
}

/** The neutral text where none is given. */
export const PLAIN_SENTENCES: readonly string[] = [
  'The library opens at nine in the morning and closes at six in the evening.',
  'Water boils at a lower temperature on top of a high mountain.',
  'She put the letters in a drawer and went to make some tea.',
  'Trains from the north arrive at the second platform.',
  'In autumn the leaves of the maple turn red before they fall.',
  'The recipe calls for two cups of flour and a pinch of salt.',
  'He learned to play the piano when he was seven years old.',
  'A triangle has three sides, and its angles add up to half a turn.',
  'The river runs through the old town and under four bridges.',
  'They painted the fence green because there was no other paint left.',
  'Most birds build their nests in spring.',
  'The meeting was moved to Thursday so that everyone could be there.',
  'Sand is made of small grains of rock and shells.',
  'The shop around the corner sells bread, milk and newspapers.',
  'Light takes about eight minutes to come from the sun to the earth.',
  'He folded the map and looked for the road to the harbour.',
];

/** The dose is added with both signs: at the kind of position that is given, or at every position but the first. */
export async function measureNeutralText(
  run: ProtocolRun,
  prompts: readonly number[][],
  place: NeutralPlace,
  direction: Float32Array,
  dose: Dose,
  seed: number,
): Promise<Evidence['specificity']['neutral']> {
  const random = createRandom(seed, 'random directions for the guard');
  const others = Array.from({ length: RANDOM_DIRECTIONS }, () => random.direction(direction.length));
  const harmOf = async (vector: Float32Array) => measureHarm(run, prompts, place, scaled(vector, dose.absolute));
  const both = [await harmOf(direction), await harmOf(scaled(direction, -1))];
  const byChance = [];
  for (const other of others) byChance.push(await harmOf(other));
  return {
    prompts: prompts.length,
    tokens: prompts.reduce((total, tokens) => total + tokens.length, 0),
    dose,
    perplexityRatio: Math.max(...both.map((one) => one.perplexityRatio)),
    divergence: Math.max(...both.map((one) => one.divergence)),
    random: {
      perplexityRatio: mean(byChance.map((one) => one.perplexityRatio)),
      divergence: mean(byChance.map((one) => one.divergence)),
    },
  };
}

async function measureHarm(run: ProtocolRun, prompts: readonly number[][], where: NeutralPlace, vector: Float32Array) {
  const point = pointOfSite(where);
  let [base, changed, divergence, tokens, positions] = [0, 0, 0, 0, 0];
  for (const [from, to] of portions(prompts.length, 16)) {
    const some = prompts.slice(from, to);
    const variants: Variant[] = some.flatMap(({ length }, prompt) => [
      { prompt, interventions: [] },
      { prompt, interventions: [{ point, positions: positionsIn(length, where), kind: 'add' as const, vector }] },
    ]);
    const results = await runChecked(run, { prompts: some, variants, surprise: true });
    some.forEach(({ length }, i) => {
      const before = surpriseOf(results, 2 * i, length);
      const after = surpriseOf(results, 2 * i + 1, length);
      for (let place = firstIn(length, where); place < length - 1; place++) {
        base += before.logProbabilities[place] ?? missing('log probability of token', place + 1);
        changed += after.logProbabilities[place] ?? missing('log probability of token', place + 1);
        tokens++;
        divergence += after.divergences[place] ?? missing('divergence at position', place);
        positions++;
      }
    });
  }
  return { perplexityRatio: Math.exp((base - changed) / (tokens || 1)), divergence: divergence / (positions || 1) };
}

function positionsIn(length: number, where: NeutralPlace): Positions {
  return where.position === undefined ? { from: 1 } : [firstIn(length, where)];
}

/** As far from the end as the position, of the prompt without its last token, which is the one to be predicted; never the first token. */
function firstIn(length: number, { position }: NeutralPlace): number {
  if (position === undefined) return 1;
  return Math.max(1, Math.min(length - 2, position < 0 ? length - 1 + position : position));
}
