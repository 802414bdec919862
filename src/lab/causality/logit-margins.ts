/**
 * Measures logit differences under interventions: the margin between the target's tokens, divided by the temperature that each run shows in its control
 * tokens. Without that correction any vector has an effect, as the last norm rescales all logits.
 */

import type { Variant } from '../core/engine.ts';
import { missing } from '../core/missing.ts';
import { type RobustSlope, robustSlopes } from '../statistics/robust-slope.ts';
import { mean } from '../statistics/summary.ts';
import type { Evidence } from './evidence.ts';
import { logitsOf, type ProtocolRun, portionOf, portions, runChecked } from './readings.ts';

/** A factor beyond these, or one that is known no better than to this share of itself, is no temperature that can be told. */
const COLDEST = 0.1;
const HOTTEST = 10;
const VAGUEST = 0.5;

/** One number for each run. */
export interface Margins {
  /** NaN where the temperature cannot be told. */
  corrected: Float64Array;
  raw: Float64Array;
  /** The temperature, NaN where it cannot be told. */
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

  function put(margins: Margins, index: number, logits: Float32Array, scale: number): void {
    const positive = mean(logits.subarray(0, positives));
    const negative = mean(logits.subarray(positives, positives + negatives));
    margins.raw[index] = positive - negative;
    margins.corrected[index] = (positive - negative) / scale;
    margins.scale[index] = scale;
    margins.positive[index] = positive;
    margins.negative[index] = negative;
    margins.control[index] = mean(controlsOf(logits));
  }

  const base = emptyMargins(prompts.length);
  baseLogits.forEach((logits, prompt) => {
    put(base, prompt, logits, 1);
  });
  const slopes = baseLogits.map((logits) => robustSlopes(controlsOf(logits)));
  return {
    base,
    async measure(count, variantAt) {
      const margins = emptyMargins(count);
      await read(count, variantAt, (logits, index, prompt) => {
        const slopeOf = slopes[prompt] ?? missing('logits of the unchanged prompt', prompt);
        put(margins, index, logits, temperature(slopeOf(controlsOf(logits))));
      });
      return margins;
    },
  };
}

function temperature({ slope, error }: RobustSlope): number {
  const isTold = slope >= COLDEST && slope <= HOTTEST && error <= VAGUEST * slope;
  return isTold ? slope : Number.NaN;
}

/** The margins of some of the runs. */
export function partOfMargins(margins: Margins, from: number, to: number): Margins {
  const cut = (values: Float64Array) => values.subarray(from, to);
  return {
    corrected: cut(margins.corrected),
    raw: cut(margins.raw),
    scale: cut(margins.scale),
    positive: cut(margins.positive),
    negative: cut(margins.negative),
    control: cut(margins.control),
  };
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
