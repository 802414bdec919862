/**
 * Measures logit differences under interventions: the margin between the target's tokens, divided by the temperature that each run shows in its control
 * tokens. Without that correction any vector has an effect, as the last norm rescales all logits.
 */

import type { Variant } from '../core/engine.ts';
import { missing } from '../core/missing.ts';
import { leastSquares } from '../statistics/least-squares.ts';
import { mean } from '../statistics/summary.ts';
import type { Evidence } from './evidence.ts';
import { logitsOf, type ProtocolRun, portionOf, portions, runChecked } from './readings.ts';

/** The range of temperatures; a factor beyond it means that the run is broken. */
const COLDEST = 0.1;
const HOTTEST = 10;

/** One number for each run. */
export interface Margins {
  corrected: Float64Array;
  raw: Float64Array;
  scale: Float64Array;
  /** Mean logits of the three kinds of tokens. */
  positive: Float64Array;
  negative: Float64Array;
  control: Float64Array;
}

/** The margin of one run. */
export function marginOf(margins: Float64Array, run: number): number {
  return margins[run] ?? missing('margin of run', run);
}

export interface MarginReader {
  /** The margins of the unmodified prompts. */
  base: Margins;
  measure(count: number, variantAt: (index: number) => Variant): Promise<Margins>;
}

export async function createMarginReader(
  run: ProtocolRun,
  prompts: readonly number[][],
  target: Evidence['target'],
  controls: Evidence['controls'],
): Promise<MarginReader> {
  const [positives, negatives] = [target.positive.length, target.negative.length];
  const tokens = [...target.positive, ...target.negative, ...controls.tokens].map((token) => token.id);
  const { width } = run.engine.describe();
  const controlsOf = (logits: Float32Array) => logits.subarray(positives + negatives);

  async function read(
    count: number,
    variantAt: (index: number) => Variant,
    take: (logits: Float32Array, index: number, prompt: number) => void,
  ): Promise<void> {
    for (const [from, to] of portions(count, portionOf(tokens.length + width))) {
      const variants = Array.from({ length: to - from }, (_, i) => variantAt(from + i));
      const results = await runChecked(run, { prompts, variants, logits: { positions: [-1], tokens } });
      variants.forEach(({ prompt }, i) => {
        take(logitsOf(results, i, tokens.length), from + i, prompt);
      });
    }
  }

  const baseLogits: Float32Array[] = [];
  await read(
    prompts.length,
    (prompt) => ({ prompt, interventions: [] }),
    (logits) => baseLogits.push(logits),
  );

  function put(margins: Margins, index: number, logits: Float32Array, base: Float32Array): void {
    const positive = mean(logits.subarray(0, positives));
    const negative = mean(logits.subarray(positives, positives + negatives));
    const scale = temperature(controlsOf(base), controlsOf(logits));
    margins.raw[index] = positive - negative;
    margins.corrected[index] = (positive - negative) / scale;
    margins.scale[index] = scale;
    margins.positive[index] = positive;
    margins.negative[index] = negative;
    margins.control[index] = mean(controlsOf(logits));
  }

  const base = emptyMargins(prompts.length);
  baseLogits.forEach((logits, prompt) => {
    put(base, prompt, logits, logits);
  });
  return {
    base,
    async measure(count, variantAt) {
      const margins = emptyMargins(count);
      await read(count, variantAt, (logits, index, prompt) => {
        put(margins, index, logits, baseLogits[prompt] ?? missing('logits of the unchanged prompt', prompt));
      });
      return margins;
    },
  };
}

function temperature(base: Float32Array, control: Float32Array): number {
  const { slope } = leastSquares(base, control);
  return Number.isNaN(slope) ? 1 : Math.min(HOTTEST, Math.max(COLDEST, slope));
}

export function isClamped(scale: number): boolean {
  return scale <= COLDEST || scale >= HOTTEST;
}

function emptyMargins(count: number): Margins {
  const numbers = () => new Float64Array(count);
  return {
    corrected: numbers(),
    raw: numbers(),
    scale: numbers(),
    positive: numbers(),
    negative: numbers(),
    control: numbers(),
  };
}
