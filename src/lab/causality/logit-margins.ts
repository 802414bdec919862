/**
 * Measures logit differences under interventions: margins between the target's tokens of each class, divided by the temperature that each run shows in its
 * control tokens. Without that correction any vector has an effect, as the last norm rescales all logits.
 */

import type { Variant } from '../core/engine.ts';
import { missing } from '../core/missing.ts';
import { type RobustSlope, robustSlopes } from '../statistics/robust-slope.ts';
import { mean } from '../statistics/summary.ts';
import { byClass } from './classes.ts';
import type { Evidence } from './evidence.ts';
import { logitsOf, type ProtocolRun, portionOf, portions, runChecked } from './readings.ts';

/** A factor beyond these, or one that is known no better than to this share of itself, is no temperature that can be told. */
const COLDEST = 0.1;
const HOTTEST = 10;
const VAGUEST = 0.5;

/** One number for each run. */
export interface Margins {
  /** The mean logit of each class's target tokens, as they are. */
  classes: readonly Float64Array[];
  /** Of the control tokens. */
  control: Float64Array;
  /** The temperature, NaN where it cannot be told. */
  scale: Float64Array;
}

/** The logit of one class less the mean of the others; NaN where the temperature of the run cannot be told. */
export function marginOf(margins: Margins, run: number, own: number): number {
  const { classes } = margins;
  let others = 0;
  for (let label = 0; label < classes.length; label++) if (label !== own) others += logitIn(margins, run, label);
  return (logitIn(margins, run, own) - others / (classes.length - 1)) / scaleOf(margins, run);
}

/** The logit of one class less that of another: with two classes, the margin. */
export function contrastOf(margins: Margins, run: number, own: number, other: number): number {
  return (logitIn(margins, run, own) - logitIn(margins, run, other)) / scaleOf(margins, run);
}

/** The same runs without correction for temperature. */
export function uncorrected(margins: Margins): Margins {
  return { ...margins, scale: new Float64Array(margins.scale.length).fill(1) };
}

/** Runs whose temperature cannot be told. */
export function countUntold({ scale }: Margins): number {
  return scale.filter(Number.isNaN).length;
}

export function logitIn({ classes }: Margins, run: number, label: number): number {
  return classes[label]?.[run] ?? missing(`logit of class ${label} in run`, run);
}

function scaleOf({ scale }: Margins, run: number): number {
  return scale[run] ?? missing('temperature of run', run);
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
  const words = byClass(target);
  const ends = words.map((_, label) => words.slice(0, label + 1).flat().length);
  const tokens = [...words.flat(), ...controls.tokens].map((token) => token.id);
  const { width } = run.engine.describe();
  const controlsOf = (logits: Float32Array) => logits.subarray(words.flat().length);

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
    for (const [label, own] of margins.classes.entries()) {
      own[index] = mean(logits.subarray(label === 0 ? 0 : ends[label - 1], ends[label]));
    }
    margins.scale[index] = scale;
    margins.control[index] = mean(controlsOf(logits));
  }

  const base = emptyMargins(prompts.length, words.length);
  baseLogits.forEach((logits, prompt) => {
    put(base, prompt, logits, 1);
  });
  const slopes = baseLogits.map((logits) => robustSlopes(controlsOf(logits)));
  return {
    base,
    async measure(count, variantAt) {
      const margins = emptyMargins(count, words.length);
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
  return { classes: margins.classes.map(cut), control: cut(margins.control), scale: cut(margins.scale) };
}

function emptyMargins(count: number, classes: number): Margins {
  const numbers = () => new Float64Array(count);
  return { classes: Array.from({ length: classes }, numbers), control: numbers(), scale: numbers() };
}
