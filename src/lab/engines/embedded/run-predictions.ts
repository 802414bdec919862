/** Owns what a run says of predictions: logits at chosen positions, and surprise. */

import type { RunRequest, VariantResult } from '../../core/engine.ts';
import { missing } from '../../core/missing.ts';
import { resolvePositions } from '../../core/positions.ts';
import type { Model } from './model.ts';
import { type PromptRecord, residualRow } from './prompt-records.ts';

/** A variant whose residual stream after the last layer is there. */
export interface Computed {
  record: PromptRecord;
  result: VariantResult;
  /** From some position on it is the variant's own; before that, and without it, it is that of the prompt as it is. */
  own?: { first: number; address: number; stride: number };
}

export function predict(model: Model, request: RunRequest, variants: readonly Computed[]): void {
  if (request.logits) addLogits(model, request.logits, variants);
  if (request.surprise) addSurprise(model, variants);
}

function addLogits(model: Model, asked: NonNullable<RunRequest['logits']>, variants: readonly Computed[]): void {
  const { layers, vocabulary } = model.spec;
  const count = asked.tokens?.length ?? vocabulary;
  const targets: Float32Array[] = [];
  const addresses: number[] = [];
  for (const variant of variants) {
    const positions = resolvePositions(asked.positions, variant.record.tokens.length);
    const logits = new Float32Array(positions.length * count);
    variant.result.logits = logits;
    positions.forEach((position, i) => {
      targets.push(logits.subarray(i * count, (i + 1) * count));
      addresses.push(rowAt(variant, position, layers));
    });
  }
  const targetOf = (index: number) => targets[index] ?? missing('place for the logits of row', index);
  model.predictions.logits(addresses, { tokens: asked.tokens, take: (index, row) => targetOf(index).set(row) });
}

function addSurprise(model: Model, variants: readonly Computed[]): void {
  const rows = variants.flatMap((variant) => surpriseRows(variant, model.spec.layers));
  const own = rows.filter(({ address, base }) => address !== base);
  const compared = model.predictions.compare(own);
  own.forEach((row, i) => {
    row.write(
      compared.logProbabilities[i] ?? missing('log probability of row', i),
      compared.divergences[i] ?? missing('divergence of row', i),
    );
  });

  const shared = rows.filter(({ address, base }) => address === base);
  // Variants of one prompt have the same rows before their first change.
  const distinct = [...new Map(shared.map((row) => [row.address, row])).values()];
  const logProbabilities = model.predictions.logProbabilities(distinct);
  const known = new Map(
    distinct.map(({ address }, i) => [address, logProbabilities[i] ?? missing('log probability of row', i)]),
  );
  for (const row of shared) row.write(known.get(row.address) ?? missing('log probability at address', row.address), 0);
}

interface SurpriseRow {
  address: number;
  base: number;
  next: number | undefined;
  write(logProbability: number, divergence: number): void;
}

function surpriseRows(variant: Computed, layers: number): SurpriseRow[] {
  const { record, result } = variant;
  const { tokens } = record;
  const logProbabilities = new Float32Array(tokens.length - 1);
  const divergences = new Float32Array(tokens.length);
  result.surprise = { logProbabilities, divergences };
  return tokens.map((_, position) => ({
    address: rowAt(variant, position, layers),
    base: residualRow(record, layers, position),
    next: tokens[position + 1],
    write(logProbability, divergence) {
      if (position < logProbabilities.length) logProbabilities[position] = logProbability;
      divergences[position] = divergence;
    },
  }));
}

function rowAt({ record, own }: Computed, position: number, layers: number): number {
  if (own && position >= own.first) return own.address + (position - own.first) * own.stride;
  return residualRow(record, layers, position);
}
