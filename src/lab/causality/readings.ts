/** Reads activations and logits from the engine, in requests of bounded memory, and checks that every number is there and finite. */

import { CuvetteError } from '../../errors.ts';
import type { Engine, ForwardRequest, Variant, VariantResult } from '../core/engine.ts';
import { pointOfSite, widthAt } from '../core/hook-points.ts';
import { logitOf } from '../core/logits.ts';
import { missing } from '../core/missing.ts';
import { resolvePositions } from '../core/positions.ts';
import { addScaled } from '../statistics/vectors.ts';
import type { Evidence } from './evidence.ts';

export type Site = Evidence['site'];

/** The numbers that one request may return, and the prompts that it may have. */
const NUMBERS = 1 << 22;
const PROMPTS = 256;

export interface ProtocolRun {
  engine: Engine;
  signal: AbortSignal;
  /** Counts finished runs of the model. */
  advance(count: number): void;
}

export async function tokenizeWithPosition(
  run: ProtocolRun,
  texts: readonly string[],
  position: number,
): Promise<number[][]> {
  const prompts = await run.engine.tokenize(texts);
  prompts.forEach((tokens, i) => {
    resolvePositions([position], tokens.length, texts[i]);
  });
  return prompts;
}

/** Prompts × width. */
export async function readSite(run: ProtocolRun, prompts: readonly number[][], site: Site): Promise<Float32Array> {
  const width = widthAt(run.engine.describe(), site);
  const rows = new Float32Array(prompts.length * width);
  for (const [from, to] of portions(prompts.length, PROMPTS)) {
    const results = await runChecked(run, {
      prompts: prompts.slice(from, to),
      taps: [{ point: pointOfSite(site), positions: [site.position] }],
    });
    results.forEach((_, i) => {
      rows.set(activationsOf(results, i, width), (from + i) * width);
    });
  }
  return rows;
}

/** The mean logit of every token after the prompts of each class. */
export async function meanLogits(
  run: ProtocolRun,
  prompts: readonly number[][],
  labels: ArrayLike<number>,
  classes: number,
): Promise<Float64Array[]> {
  const { vocabulary } = run.engine.describe();
  const sums = Array.from({ length: classes }, () => ({ count: 0, sum: new Float64Array(vocabulary) }));
  for (const [from, to] of portions(prompts.length, portionOf(vocabulary))) {
    const results = await runChecked(run, { prompts: prompts.slice(from, to), logits: { positions: [-1] } });
    results.forEach((_, i) => {
      const label = labels[from + i] ?? missing('label of prompt', from + i);
      const own = sums[label] ?? missing('class', label);
      own.count++;
      addScaled(own.sum, logitsOf(results, i, vocabulary), 0, 1);
    });
  }
  for (const { count, sum } of sums) {
    for (let token = 0; token < vocabulary; token++) sum[token] = logitOf(sum, token) / count;
  }
  return sums.map(({ sum }) => sum);
}

/** The logits of one variant, which must be `count`. */
export function logitsOf(results: readonly VariantResult[], variant: number, count: number): Float32Array {
  const logits = results[variant]?.logits ?? missing('logits of variant', variant);
  checkCount(`logits of variant ${variant}`, logits.length, count);
  return logits;
}

/** The activations of one variant at the only tap, which must be `count` numbers. */
function activationsOf(results: readonly VariantResult[], variant: number, count: number): Float32Array {
  const activations = results[variant]?.activations[0] ?? missing('activation of variant', variant);
  checkCount(`numbers of the activations of variant ${variant}`, activations.length, count);
  return activations;
}

/** The surprise of one variant of a prompt with so many tokens. */
export function surpriseOf(results: readonly VariantResult[], variant: number, tokens: number) {
  const surprise = results[variant]?.surprise ?? missing('surprise of variant', variant);
  checkCount(`log probabilities of variant ${variant}`, surprise.logProbabilities.length, tokens - 1);
  checkCount(`divergences of variant ${variant}`, surprise.divergences.length, tokens);
  return surprise;
}

/** How many variants with so many numbers each fit into one request. */
export function portionOf(numbers: number): number {
  return Math.max(1, Math.min(4096, Math.floor(NUMBERS / numbers)));
}

export function* portions(count: number, size: number): Generator<[from: number, to: number]> {
  for (let from = 0; from < count; from += size) yield [from, Math.min(count, from + size)];
}

/** Runs a request. Numbers that are not finite are an error: every comparison would take them for "no effect". */
export async function runChecked(run: ProtocolRun, request: ForwardRequest): Promise<VariantResult[]> {
  run.signal.throwIfAborted();
  const results = await run.engine.run(request, run.signal);
  const variants: readonly Variant[] | undefined = request.variants;
  const expected = variants?.length ?? request.prompts.length;
  checkCount('results', results.length, expected);
  for (const [i, { activations, logits, surprise }] of results.entries()) {
    const lists = [...activations, logits, surprise?.logProbabilities, surprise?.divergences];
    if (lists.every((list) => list === undefined || allFinite(list))) continue;
    const { interventions } = variants?.[i] ?? { interventions: [] };
    const changed = interventions.length > 0 ? 'under an intervention' : 'as it is';
    throw new CuvetteError(
      'bad_model',
      `The model ${run.engine.describe().id} gave a number that is not finite, ${changed}. Its weights may be damaged, or the activation too large for its precision. There is no verdict.`,
    );
  }
  run.advance(results.length);
  return results;
}

function checkCount(what: string, given: number, expected: number): void {
  if (given === expected) return;
  throw new CuvetteError('internal', `The engine was asked for ${expected} ${what} and gave ${given}.`);
}

function allFinite(list: Float32Array): boolean {
  let sum = 0;
  // 0 × infinity and 0 × NaN are NaN.
  for (let i = 0; i < list.length; i++) sum += (list[i] ?? missing('number', i)) * 0;
  return sum === 0;
}
