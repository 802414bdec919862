/**
 * Measures what replacing one activation does to the choice between target tokens, at every layer, head and position of a place: by the activation of the
 * counterfactual, by zeros, or by the mean; or estimates the first of them by gradients (attribution patching), all at once.
 */

import { CuvetteError } from '../../errors.ts';
import { logitsOf, type ProtocolRun, portionOf, portions, runChecked } from '../causality/readings.ts';
import type { HookPlace, HookPoint, Variant } from '../core/engine.ts';
import { isInAttention, widthAt } from '../core/hook-points.ts';
import { missing } from '../core/missing.ts';
import { mean } from '../statistics/summary.ts';
import { addScaled } from '../statistics/vectors.ts';

export type PatchMethod = 'attribution' | 'interchange' | 'zero' | 'mean';

export interface PatchPlan {
  prompts: readonly number[][];
  /** By index: of each pair the prompt with label 1, then the one with label 0. */
  pairs: readonly (readonly [number, number])[];
  place: HookPlace;
  layers: readonly number[];
  /** Negative ones count from a prompt's end. */
  positions: readonly number[];
  target: { positive: readonly number[]; negative: readonly number[] };
  method: PatchMethod;
}

export interface PatchEffects {
  /** One for each layer, or for each head of it. */
  points: HookPoint[];
  /** Points × positions: the share of the difference between the two prompts' answers that is lost. */
  shares: Float64Array;
  /** The mean margin after prompts with label 1, less that after prompts with label 0, in logits. */
  gap: number;
}

/** Below this the two prompts of a pair have the same answer, and nothing can be a share of the difference. */
const LEAST_GAP = 1e-3;

export async function measurePatches(run: ProtocolRun, plan: PatchPlan): Promise<PatchEffects> {
  const points = pointsOf(run, plan);
  const measured = plan.method === 'attribution' ? await estimate(run, plan) : await patch(run, plan, points);
  const signed = (values: ArrayLike<number>) =>
    mean(Array.from(values, (value, row) => (row % 2 === 0 ? value : -value)));
  const gap = 2 * signed(measured.margins);
  if (!(Math.abs(gap) >= LEAST_GAP))
    throw new CuvetteError(
      'invalid_input',
      'The model chooses between the target tokens in the same way after both prompts of the pairs. Name tokens that it chooses between.',
    );
  const sites = points.length * plan.positions.length;
  // An exchange can take the answer over to that of the other prompt; an ablation can only remove the difference.
  const whole = plan.method === 'attribution' || plan.method === 'interchange' ? gap : gap / 2;
  const shares = Float64Array.from({ length: sites }, (_, site) => {
    const changes = measured.margins.map((_, row) => measured.changes[row * sites + site] ?? missing('effect', site));
    return -signed(changes) / whole;
  });
  return { points, shares, gap };
}

/** For each pair both prompts: the margin, and how it changes at each site. */
interface Measured {
  margins: Float32Array;
  changes: Float32Array;
}

function pointsOf({ engine }: ProtocolRun, { place, layers }: PatchPlan): HookPoint[] {
  const model = engine.describe();
  if (!isInAttention(place)) return layers.map((layer) => ({ layer, place }));
  widthAt(model, { layer: 0, place, head: 0 }, model.context);
  return layers.flatMap((layer) => Array.from({ length: model.heads }, (_, head) => ({ layer, place, head })));
}

async function estimate({ engine, signal, advance }: ProtocolRun, plan: PatchPlan): Promise<Measured> {
  if (!engine.attribute)
    throw new CuvetteError(
      'invalid_input',
      'The embedded engine computes no gradients, which attribution needs. Serve the model with the torch engine (cuvette lab serve --engine torch), or give method: interchange, which measures the same one by one.',
    );
  signal.throwIfAborted();
  const { layers, heads } = engine.describe();
  const found = await engine.attribute(plan, signal);
  advance(2 * plan.pairs.length);
  if (![...found.changes, ...found.margins].every(Number.isFinite))
    throw new CuvetteError('bad_model', 'The model gave gradients that are not finite. There is no map.');
  const perLayer = (isInAttention(plan.place) ? heads : 1) * plan.positions.length;
  const chosen = plan.pairs.flatMap((_, pair) =>
    [2 * pair, 2 * pair + 1].flatMap((row) =>
      plan.layers.map((layer) => {
        const from = (row * layers + layer) * perLayer;
        return found.changes.subarray(from, from + perLayer);
      }),
    ),
  );
  return { margins: found.margins, changes: joined(chosen) };
}

async function patch(run: ProtocolRun, plan: PatchPlan, points: readonly HookPoint[]): Promise<Measured> {
  const { pairs, positions } = plan;
  const rows = pairs.flatMap(([first, second]) => [
    { own: first, other: second },
    { own: second, other: first },
  ]);
  const replacement = await replacements(run, plan, points);
  const sites = points.flatMap((_, point) => positions.map((_, position) => ({ point, position })));
  const margins = await marginsOf(
    run,
    plan,
    rows.map(({ own }) => ({ prompt: own, interventions: [] })),
  );
  const variants = rows.flatMap(({ own, other }) =>
    sites.map(({ point, position }): Variant => {
      const at = {
        point: points[point] ?? missing('point', point),
        positions: [positions[position] ?? missing('position', position)],
      };
      return { prompt: own, interventions: [{ ...at, kind: 'set', vector: replacement(other, point, position) }] };
    }),
  );
  const after = await marginsOf(run, plan, variants);
  const changes = after.map((margin, i) => {
    const row = Math.floor(i / sites.length);
    return margin - (margins[row] ?? missing('margin of row', row));
  });
  return { margins, changes };
}

type Replacement = (prompt: number, point: number, position: number) => Float32Array;

/** What an activation is replaced by: that of a prompt, zeros, or the mean over all prompts. */
async function replacements(run: ProtocolRun, plan: PatchPlan, points: readonly HookPoint[]): Promise<Replacement> {
  const { prompts, positions, method, place } = plan;
  const model = run.engine.describe();
  if (place === 'pattern') checkPatterns(plan);
  const widthOf = (prompt: number, point: number) =>
    widthAt(model, points[point] ?? missing('point', point), prompts[prompt]?.length ?? missing('prompt', prompt));
  if (method === 'zero') {
    const zeros = points.map((_, point) => new Float32Array(widthOf(0, point)));
    return (_, point) => zeros[point] ?? missing('zeros of point', point);
  }
  const read = await readAll(run, plan, points);
  const rowOf: Replacement = (prompt, point, position) => {
    const width = widthOf(prompt, point);
    const rows = read[prompt]?.[point] ?? missing('activation of prompt', prompt);
    const row = rows.subarray(position * width, (position + 1) * width);
    return row.length === width ? row : missing('activation at position', position);
  };
  if (method === 'interchange') return rowOf;
  const means = points.map((_, point) =>
    positions.map((_, position) => {
      const sum = new Float64Array(widthOf(0, point));
      for (const prompt of prompts.keys()) addScaled(sum, rowOf(prompt, point, position), 0, 1 / prompts.length);
      return Float32Array.from(sum);
    }),
  );
  return (_, point, position) => means[point]?.[position] ?? missing('mean at position', position);
}

function checkPatterns({ prompts, pairs, method }: PatchPlan): void {
  if (method === 'zero')
    throw new CuvetteError(
      'invalid_input',
      'A row of a pattern sums to 1, and cannot be set to zero. To switch heads off, give place: z; or give method: mean, or interchange.',
    );
  const lengths = prompts.map(({ length }) => length);
  const isWrong =
    method === 'mean'
      ? lengths.some((length) => length !== lengths[0])
      : pairs.some(([first, second]) => lengths[first] !== lengths[second]);
  if (!isWrong) return;
  throw new CuvetteError(
    'invalid_input',
    `Rows of patterns have a weight for each token, so that ${method === 'mean' ? 'all prompts' : 'both prompts of a pair'} must have as many. Give such prompts, or place: z.`,
  );
}

/** Of each prompt and point: positions × width. */
async function readAll(
  run: ProtocolRun,
  { prompts, positions }: PatchPlan,
  points: readonly HookPoint[],
): Promise<Float32Array[][]> {
  const model = run.engine.describe();
  const longest = Math.max(...prompts.map(({ length }) => length));
  const numbers = points.reduce((sum, point) => sum + positions.length * widthAt(model, point, longest), 0);
  const taps = points.map((point) => ({ point, positions }));
  const read: Float32Array[][] = [];
  for (const [from, to] of portions(prompts.length, portionOf(numbers))) {
    const results = await runChecked(run, { prompts: prompts.slice(from, to), taps });
    read.push(...results.map(({ activations }) => activations));
  }
  return read;
}

async function marginsOf(
  run: ProtocolRun,
  { prompts, target }: PatchPlan,
  variants: readonly Variant[],
): Promise<Float32Array> {
  const tokens = [...target.positive, ...target.negative];
  const margins = new Float32Array(variants.length);
  for (const [from, to] of portions(variants.length, portionOf(tokens.length))) {
    const some = variants.slice(from, to);
    const results = await runChecked(run, { prompts, variants: some, logits: { positions: [-1], tokens } });
    some.forEach((_, i) => {
      const logits = logitsOf(results, i, tokens.length);
      const positive = mean(logits.subarray(0, target.positive.length));
      margins[from + i] = positive - mean(logits.subarray(target.positive.length));
    });
  }
  return margins;
}

function joined(parts: readonly Float32Array[]): Float32Array {
  const all = new Float32Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
