/** Computes the predictions that a run asks for: logits at chosen positions, and surprise. */

import type { ForwardRequest, VariantResult } from '../../core/engine.ts';
import { missing } from '../../core/missing.ts';
import { resolvePositions } from '../../core/positions.ts';
import { type CachedPrompt, residualRow } from './kv-cache.ts';
import type { Model } from './model.ts';

/** A variant whose residual stream after the last layer has been computed. */
export interface Computed {
  cached: CachedPrompt;
  result: VariantResult;
  /** The variant's own rows, from its first changed position on. Rows before it are those of the unmodified prompt. */
  own?: { first: number; address: number; stride: number };
}

export function predict(model: Model, request: ForwardRequest, variants: readonly Computed[]): void {
  if (request.logits) addLogits(model, request.logits, variants);
  if (request.surprise) addSurprise(model, variants);
}

function addLogits(model: Model, asked: NonNullable<ForwardRequest['logits']>, variants: readonly Computed[]): void {
  const { layers, vocabulary } = model.spec;
  const count = asked.tokens?.length ?? vocabulary;
  const targets: Float32Array[] = [];
  const addresses: number[] = [];
  for (const variant of variants) {
    const positions = resolvePositions(asked.positions, variant.cached.tokens.length);
    const logits = new Float32Array(positions.length * count);
    variant.result.logits = logits;
    positions.forEach((position, i) => {
      targets.push(logits.subarray(i * count, (i + 1) * count));
      addresses.push(rowAt(variant, position, layers));
    });
  }
  const targetOf = (index: number) => targets[index] ?? missing('array for the logits of row', index);
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
  const { cached, result } = variant;
  const { tokens } = cached;
  const logProbabilities = new Float32Array(tokens.length - 1);
  const divergences = new Float32Array(tokens.length);
  result.surprise = { logProbabilities, divergences };
  return tokens.map((_, position) => ({
    address: rowAt(variant, position, layers),
    base: residualRow(cached, layers, position),
    next: tokens[position + 1],
    write(logProbability, divergence) {
      if (position < logProbabilities.length) logProbabilities[position] = logProbability;
      divergences[position] = divergence;
    },
  }));
}

function rowAt({ cached, own }: Computed, position: number, layers: number): number {
  if (own && position >= own.first) return own.address + (position - own.first) * own.stride;
  return residualRow(cached, layers, position);
}
