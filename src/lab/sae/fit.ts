/** Checks whether an SAE fits a model, by its shape and by how well it reconstructs activations. The features of one that does not fit mean nothing. */

import { CuvetteError } from '../../errors.ts';
import { missing } from '../core/missing.ts';
import type { Sae } from '../core/sae.ts';
import { mean, sum } from '../statistics/summary.ts';
import { centreRows } from '../statistics/vectors.ts';
import { decodeSae, encodeSaePlainly } from './encode.ts';
import { measureReading, misreadingOf } from './reading.ts';

export interface SaeFit {
  /** Rows that this is measured on. */
  rows: number;
  /** Mean number of active features of a row. */
  l0: number;
  /** Fraction of the variance that the reconstruction leaves unexplained: 0 is perfect, 1 no better than the mean row. */
  fvu: number;
  meanSquaredError: number;
  /** The same for each row by itself, against the mean of all rows. */
  each: { l0: number; fvu: number }[];
}

/** An SAE that leaves more unexplained is refused unless forced. */
const LARGEST_FVU = 0.5;

/**
 * Measures it on activations of the model, and refuses it if it does not fit, unless that is forced. `features` are those of the rows, where an engine
 * has computed them already. `targets` are what a transcoder should have written; without them it is not judged.
 */
export function checkSae(
  sae: Sae,
  model: SaeModel,
  rows: Float32Array,
  options: { features?: Float32Array; targets?: Float32Array; force?: boolean } = {},
): SaeFit {
  checkSaeShape(sae, model);
  const features = options.features ?? encodeSaePlainly(sae, rows);
  const fit = measureFit(sae, rows, features, options.targets);
  const isJudged = sae.output === undefined || options.targets !== undefined;
  if (isJudged && !options.force) {
    refuseBadFit(sae, fit);
    refuseMisreading(sae, rows, features, options.targets ?? rows);
  }
  return fit;
}

/** The model that the SAE should fit. */
export interface SaeModel {
  id: string;
  width: number;
  layers: number;
}

/** Rejects an SAE whose shape is that of another model. Needs no activations. */
export function checkSaeShape(sae: Sae, model: SaeModel): void {
  if (sae.width !== model.width) {
    const of = sae.model === undefined ? 'for activations' : `for ${sae.model}, with activations`;
    throw new CuvetteError(
      'bad_model',
      `SAE ${sae.id} (${sae.format}) is ${of} of width ${sae.width}${at(sae)}, and ${model.id} has width ${model.width}. Give an SAE that was trained on this model.`,
    );
  }
  // One that does not say its layer is judged by how well it reconstructs.
  if (sae.hookPoint === undefined) return;
  const { layer } = sae.hookPoint;
  if (layer < model.layers) return;
  throw new CuvetteError(
    'bad_model',
    `SAE ${sae.id} (${sae.format}) is of layer ${layer}, and ${model.id} has layers 0 to ${model.layers - 1}. Give an SAE that was trained on this model.`,
  );
}

function measureFit(sae: Sae, rows: Float32Array, features: Float32Array, targets?: Float32Array): SaeFit {
  const wanted = targets ?? (sae.output === undefined ? rows : undefined);
  const width = sae.output?.width ?? sae.width;
  const count = rows.length / sae.width;
  const active = Array.from({ length: count }, (_, row) => countActive(features, row, sae.features));
  const l0 = mean(active);
  if (wanted === undefined) {
    const each = active.map((one) => ({ l0: one, fvu: Number.NaN }));
    return { rows: count, l0, fvu: Number.NaN, meanSquaredError: Number.NaN, each };
  }
  const decoded = decodeSae(sae, features, rows);
  const { centre } = centreRows(wanted, width);
  const rowErrors = active.map((one, row) => ({
    l0: one,
    error: squaredDistance(wanted, row * width, decoded, row * width, width),
    spread: squaredDistance(wanted, row * width, centre, 0, width),
  }));
  const error = sum(rowErrors.map((row) => row.error));
  return {
    rows: count,
    l0,
    fvu: ratio(error, sum(rowErrors.map((row) => row.spread))),
    meanSquaredError: error / wanted.length,
    each: rowErrors.map((row) => ({ l0: row.l0, fvu: ratio(row.error, row.spread) })),
  };
}

function refuseBadFit(sae: Sae, fit: SaeFit): void {
  // Written so that what is not a number, as from weights that are not, is refused too.
  if (fit.fvu <= LARGEST_FVU) return;
  throw new CuvetteError(
    'bad_model',
    `SAE ${sae.id} (${sae.format}) leaves ${percent(fit.fvu)} of the variance of these activations unexplained (FVU, on ${fit.rows} rows, L0 ${fit.l0.toFixed(1)}), ` +
      `more than ${percent(LARGEST_FVU)}${at(sae)}. It is of another model, layer or place, or wants activations prepared in another way. Give force to use it all the same.`,
  );
}

/** Features that are looked at once more to find a misreading, and the fewest rows, however many features each has. */
const MOST_READ = 2 ** 22;
const FEWEST_READ = 24;

function refuseMisreading(sae: Sae, rows: Float32Array, features: Float32Array, wanted: Float32Array): void {
  const count = rows.length / sae.width;
  const some = Math.min(count, Math.max(FEWEST_READ, Math.floor(MOST_READ / sae.features)));
  const first = (numbers: Float32Array) => numbers.subarray(0, (numbers.length / count) * some);
  const why = misreadingOf(sae, measureReading(sae, first(rows), first(features), first(wanted)));
  if (why === undefined) return;
  throw new CuvetteError(
    'bad_model',
    `SAE ${sae.id} (${sae.format}) is not read as it was trained: ${why}${at(sae)}. Its activation function, biases or normalisation are others than its files say. Give force to use it all the same.`,
  );
}

function at(sae: Sae): string {
  return sae.hookName === undefined ? '' : ` (it says it is of ${sae.hookName})`;
}

function countActive(features: Float32Array, row: number, width: number): number {
  let count = 0;
  for (let i = row * width; i < (row + 1) * width; i++) if ((features[i] ?? missing('feature', i)) > 0) count++;
  return count;
}

function squaredDistance(
  a: Float32Array,
  aStart: number,
  b: ArrayLike<number>,
  bStart: number,
  length: number,
): number {
  let total = 0;
  for (let i = 0; i < length; i++) {
    const wanted = a[aStart + i] ?? missing('number of an activation', aStart + i);
    total += (wanted - (b[bStart + i] ?? missing('number of a reconstruction', bStart + i))) ** 2;
  }
  return total;
}

/** Rows that do not differ have no variance to explain. */
function ratio(error: number, spread: number): number {
  if (spread > 0) return error / spread;
  return error === 0 ? 0 : Number.NaN;
}

function percent(fraction: number): string {
  return `${(fraction * 100).toFixed(0)} %`;
}
