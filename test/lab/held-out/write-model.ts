/** Writes a blueprint as a Hugging Face folder of Llama's, GPT-2's or GPT-NeoX's shape, in a rotated basis. */

import type { Random } from '../../../src/lab/statistics/random.ts';
import { type Blueprint, type Head, type Layer, type Named, plus, type Unit } from './blueprint.ts';
import type { ModelFolder } from './family.ts';
import { folderOf, type Linear, type Parts, type Shape } from './model-folder.ts';
import { createRotatedBasis, type RotatedBasis } from './rotated-basis.ts';

/** So steep that SiLU and GELU are as good as ramps. */
const STEEPNESS = 12;

export interface Written {
  files: ModelFolder;
  /** A direction of the residual stream. */
  direction(named: Named): number[];
}

export function writeModel(blueprint: Blueprint, shape: Shape, random: Random): Written {
  const { width } = shape;
  const basis = createRotatedBasis(width, axesOf(blueprint), shape.kind !== 'llama', random);
  const words = [...blueprint.embedding.keys()];
  const norm = () => Float64Array.from({ length: width }, () => 0.6 + 0.9 * random.uniform());
  const finalNorm = norm();
  const reader = createReader(basis, width, blueprint.size);
  const parts: Parts = {
    words,
    embedding: placedRows([...blueprint.embedding.values()], basis, width),
    positions: placedRows(blueprint.positions, basis, width),
    layers: blueprint.layers.map((layer) => layerParts(layer, shape, blueprint.constant, basis, reader, norm)),
    finalNorm,
    unembedding: reader([...blueprint.unembedding.values()], words.length, finalNorm, 1),
  };
  return {
    files: folderOf(parts, shape),
    direction: (named) => {
      const vector = basis.place(named);
      const length = Math.hypot(...vector);
      return Array.from(vector, (value) => value / length);
    },
  };
}

/** The axes that a blueprint names itself. */
function axesOf({ embedding, unembedding, layers }: Blueprint): string[] {
  const named = [
    ...embedding.values(),
    ...unembedding.values(),
    ...layers.flatMap(({ heads, units }) => [
      ...heads.flatMap(({ scores, moves }) => [
        ...scores.flatMap(({ query, key }) => [query, key]),
        ...moves.flatMap(({ from, to }) => [from, to]),
      ]),
      ...units.flatMap(({ reads, writes }) => [reads, writes]),
    ]),
  ];
  return [...new Set(named.flatMap((one) => Object.keys(one)))];
}

/** Makes rows that read from what a norm leaves, as if there were none. */
type Reader = (rows: readonly (Named | undefined)[], count: number, gains: Float64Array, factor: number) => Linear;

function createReader(basis: RotatedBasis, width: number, size: number): Reader {
  const normFactor = Math.sqrt(width) / size;
  return (rows, count, gains, factor) => {
    const values = new Float64Array(count * width);
    rows.forEach((named, row) => {
      if (!named) return;
      const placed = basis.place(named).map((value, i) => (value * factor) / (normFactor * (gains[i] ?? Number.NaN)));
      values.set(placed, row * width);
    });
    return { rows: count, columns: width, values };
  };
}

function placedRows(rows: readonly Named[], basis: RotatedBasis, width: number): Linear {
  const values = new Float64Array(rows.length * width);
  rows.forEach((named, row) => {
    values.set(basis.place(named), row * width);
  });
  return { rows: rows.length, columns: width, values };
}

function layerParts(
  { heads, units }: Layer,
  shape: Shape,
  constant: number,
  basis: RotatedBasis,
  reader: Reader,
  norm: () => Float64Array,
): Parts['layers'][number] {
  const { width, headWidth, hidden } = shape;
  const inner = shape.heads * headWidth;
  if (heads.length > shape.heads || units.length > hidden)
    throw new RangeError('A layer has no room for all its parts.');
  const attentionNorm = norm();
  const mlpNorm = norm();
  // Attention divides by the root of the head's width.
  const factor = Math.sqrt(Math.sqrt(headWidth));
  const spread = (rows: (head: Head) => readonly (Named | undefined)[]) =>
    heads.flatMap((head) => Array.from({ length: headWidth }, (_, i) => rows(head)[i]));
  const scoreRows = (side: 'query' | 'key') => (head: Head) => {
    const rows: (Named | undefined)[] = [];
    head.scores.forEach((score, i) => {
      rows[slowRow(i, shape)] = score[side];
    });
    return rows;
  };
  const biased = ({ reads, bias = 0 }: Unit) => plus(reads, { constant: bias / constant });
  return {
    attentionNorm,
    query: reader(spread(scoreRows('query')), inner, attentionNorm, factor),
    key: reader(spread(scoreRows('key')), inner, attentionNorm, factor),
    value: reader(
      spread(({ moves }) => moves.map(({ from }) => from)),
      inner,
      attentionNorm,
      1,
    ),
    output: written(
      spread(({ moves }) => moves.map(({ to }) => to)),
      inner,
      1,
    ),
    mlpNorm,
    inner: reader(units.map(biased), hidden, mlpNorm, STEEPNESS),
    gateOpen: reader(
      units.map(() => ({ constant: 1 / constant })),
      hidden,
      mlpNorm,
      1,
    ),
    down: written(
      units.map(({ writes }) => writes),
      hidden,
      1 / STEEPNESS,
    ),
  };

  function written(columns: readonly (Named | undefined)[], count: number, factor: number): Linear {
    const values = new Float64Array(width * count);
    columns.forEach((named, column) => {
      if (!named) return;
      basis.place(named).forEach((value, row) => {
        values[row * count + column] = value * factor;
      });
    });
    return { rows: width, columns: count, values };
  }
}

/** The rows of a head that rotary embedding hardly turns, the slowest first, so that distance does not matter. */
function slowRow(i: number, { kind, headWidth }: Shape): number {
  if (kind !== 'llama') return headWidth - 1 - i;
  return headWidth / 2 - 1 - Math.floor(i / 2) + (i % 2) * (headWidth / 2);
}
