/** Computes an SAE: activations to features and back. An engine may do the dense product itself; everything around it is here. */

import { missing } from '../core/missing.ts';
import type { Sae, SaeActivation } from '../core/sae.ts';
import { mean, standardDeviation } from '../statistics/summary.ts';
import { addScaled, dot, norm } from '../statistics/vectors.ts';

/** Rows (count × width) to features (count × features), all in TypeScript. */
export function encodeSaePlainly(sae: Sae, rows: Float32Array): Float32Array {
  const input = prepareSaeInput(sae, rows);
  const products = new Float32Array((rows.length / sae.width) * sae.features);
  for (let row = 0; row * sae.width < rows.length; row++) {
    const vector = rowOf(input, row, sae.width);
    for (let feature = 0; feature < sae.features; feature++) {
      products[row * sae.features + feature] = dot(sae.encoder, vector, feature * sae.width);
    }
  }
  return activateSae(sae, products);
}

/** Prepares the input of the encoder: normalises it, and subtracts the decoder's bias where the SAE does so. Copies the array. */
export function prepareSaeInput(sae: Sae, rows: Float32Array): Float32Array {
  const { width } = sae;
  const input = new Float32Array(rows.length);
  for (let start = 0; start < rows.length; start += width) {
    const { shift, scale } = rowNormalization(sae, rows.subarray(start, start + width));
    for (let i = 0; i < width; i++) {
      const value = ((rows[start + i] ?? missing('number of an activation', start + i)) - shift) * scale;
      input[start + i] = sae.subtractsDecoderBias ? value - (sae.decoderBias[i] ?? missing('decoder bias', i)) : value;
    }
  }
  return input;
}

/** From products with the encoder, to which no bias has been added, to features. Works in place, and gives the same array back. */
export function activateSae(sae: Sae, products: Float32Array): Float32Array {
  if (sae.activation.kind === 'gated') return activateGated(sae.activation, products);
  addBias(products, sae.encoderBias);
  keepPositive(products);
  switch (sae.activation.kind) {
    case 'relu':
      return products;
    case 'jumprelu':
      return dropBelow(products, sae.activation.threshold);
    case 'topk':
      return keepLargest(products, sae.features, sae.activation.k);
    case 'groupmax':
      return keepLargest(products, sae.features / sae.activation.groups, 1);
  }
}

/** Decodes features. The encoded rows are needed to undo the normalisation, and for a skip connection. */
export function decodeSae(sae: Sae, features: Float32Array, rows: Float32Array): Float32Array {
  const width = sae.output?.width ?? sae.width;
  const count = features.length / sae.features;
  const decoded = new Float32Array(count * width);
  for (let index = 0; index < count; index++) {
    const row = rowOf(rows, index, sae.width);
    const sum = Float64Array.from(sae.decoderBias);
    rowOf(features, index, sae.features).forEach((activation, feature) => {
      if (activation !== 0) addScaled(sum, sae.decoder, feature * width, activation);
    });
    const { shift, unscale } = sae.output === undefined ? rowNormalization(sae, row) : NOT_NORMALIZED;
    for (let i = 0; i < width; i++) {
      const straight = sae.skip === undefined ? 0 : dot(sae.skip, row, i * sae.width);
      decoded[index * width + i] = (sum[i] ?? missing('decoder bias', i)) * unscale + shift + straight;
    }
  }
  return decoded;
}

/** A row is normalised as `(x - shift) × scale`, and what is decoded is `y × unscale + shift`. */
interface RowNormalization {
  shift: number;
  scale: number;
  unscale: number;
}

/** Also of what a transcoder writes: it is of another place than what it reads, and has never been normalised. */
const NOT_NORMALIZED: RowNormalization = { shift: 0, scale: 1, unscale: 1 };

function rowNormalization(sae: Sae, row: Float32Array): RowNormalization {
  if (sae.normalization === 'none') return NOT_NORMALIZED;
  if (sae.normalization === 'layer-norm') {
    const deviation = standardDeviation(row, 1);
    // SAELens adds the small number when it divides, and not when it multiplies again.
    return { shift: mean(row), scale: 1 / (deviation + 1e-5), unscale: deviation };
  }
  const ratio = norm(row) / Math.sqrt(sae.width);
  return ratio === 0 ? NOT_NORMALIZED : { shift: 0, scale: 1 / ratio, unscale: ratio };
}

function rowOf(rows: Float32Array, index: number, width: number): Float32Array {
  return rows.subarray(index * width, (index + 1) * width);
}

function addBias(values: Float32Array, bias: Float32Array): void {
  for (let start = 0; start < values.length; start += bias.length) {
    for (let i = 0; i < bias.length; i++) {
      const product = values[start + i] ?? missing('product with the encoder', start + i);
      values[start + i] = product + (bias[i] ?? missing('encoder bias', i));
    }
  }
}

function keepPositive(values: Float32Array): void {
  for (let i = 0; i < values.length; i++) {
    if ((values[i] ?? missing('feature', i)) < 0) values[i] = 0;
  }
}

function dropBelow(values: Float32Array, threshold: Float32Array): Float32Array {
  for (let start = 0; start < values.length; start += threshold.length) {
    for (let i = 0; i < threshold.length; i++) {
      const value = values[start + i] ?? missing('feature', start + i);
      if (value <= (threshold[i] ?? missing('threshold', i))) values[start + i] = 0;
    }
  }
  return values;
}

function activateGated(gated: Extract<SaeActivation, { kind: 'gated' }>, products: Float32Array): Float32Array {
  const { gateBias, scale, bias } = gated;
  for (let start = 0; start < products.length; start += gateBias.length) {
    for (let i = 0; i < gateBias.length; i++) {
      const product = products[start + i] ?? missing('product with the encoder', start + i);
      const open = product + (gateBias[i] ?? missing('gate bias', i)) > 0;
      const magnitude = product * (scale[i] ?? missing('gate scale', i)) + (bias[i] ?? missing('magnitude bias', i));
      products[start + i] = open ? Math.max(0, magnitude) : 0;
    }
  }
  return products;
}

/** Of each run of `length` values, none of them negative, the `k` largest stay. Of equal ones the first stay. */
function keepLargest(values: Float32Array, length: number, k: number): Float32Array {
  const scratch = new Float32Array(length);
  for (let start = 0; start < values.length; start += length) {
    const run = values.subarray(start, start + length);
    const active = collectPositive(run, scratch);
    if (active <= k) continue;
    const least = kthLargest(scratch, active, k);
    let room = k;
    for (const value of run) if (value > least) room--;
    for (let i = 0; i < length; i++) {
      const value = run[i] ?? missing('feature', i);
      if (value > least) continue;
      if (value === least && room > 0) room--;
      else run[i] = 0;
    }
  }
  return values;
}

function collectPositive(run: Float32Array, into: Float32Array): number {
  let count = 0;
  for (const value of run) {
    if (value > 0) into[count++] = value;
  }
  return count;
}

/** Quickselect over the first `count` values, which it puts into another order. */
function kthLargest(values: Float32Array, count: number, k: number): number {
  const at = (i: number) => values[i] ?? missing('active feature', i);
  let low = 0;
  let high = count - 1;
  while (low < high) {
    const pivot = at((low + high) >>> 1);
    let left = low;
    let right = high;
    while (left <= right) {
      while (at(left) > pivot) left++;
      while (at(right) < pivot) right--;
      if (left > right) break;
      const swapped = at(left);
      values[left++] = at(right);
      values[right--] = swapped;
    }
    if (k - 1 <= right) high = right;
    else if (k - 1 >= left) low = left;
    else break;
  }
  return at(k - 1);
}
