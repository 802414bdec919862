/** Runs a forward request: computes each unmodified prompt once, and each variant only from the first activation that it changes, many of them in one batch. */

import type { ForwardRequest, Variant, VariantResult } from '../../core/engine.ts';
import { missing } from '../../core/missing.ts';
import type { BaseNeed } from './base-runs.ts';
import { splitBySize } from './batch.ts';
import type { Change } from './interventions.ts';
import type { CachedPrompt } from './kv-cache.ts';
import { ROWS_AT_ONCE } from './layers.ts';
import type { Model } from './model.ts';
import { changedSequence, planVariant, type RunPlan, requestDepth } from './run-plan.ts';
import { predict } from './run-predictions.ts';

export function run(model: Model, request: ForwardRequest): VariantResult[] {
  const results: VariantResult[] = [];
  const residuals = residualsAtMost(request);
  const bytes = ({ tokens }: Prompt) => model.cache.bytes(tokens.length, residuals);
  for (const prompts of splitBySize(promptsOf(request), bytes, model.limits.atOnce)) {
    runPrompts(model, request, prompts, results);
    model.cache.evict();
  }
  return results;
}

/** A prompt, and its variants with their indices among the results. */
interface Prompt {
  tokens: readonly number[];
  variants: { index: number; variant: Variant }[];
}

interface Work {
  plan: RunPlan;
  cached: CachedPrompt;
  result: VariantResult;
}

interface ChangedWork extends Work {
  change: Change;
}

function runPrompts(model: Model, request: ForwardRequest, prompts: readonly Prompt[], results: VariantResult[]): void {
  const depth = requestDepth(request, model.spec.layers);
  const works: Work[] = [];
  const needs: BaseNeed[] = [];
  for (const { tokens, variants } of prompts) {
    const cached = model.cache.get(tokens);
    const need: BaseNeed = { cached, residuals: new Set(), reads: [] };
    const plans = variants.map(({ index, variant }) => ({ index, plan: planVariant(model, variant, request, need) }));
    const isShared = plans.some(({ plan: { change } }) => !change || change.first > 0);
    if (isShared || need.residuals.size > 0) needs.push(need);
    for (const { index, plan } of plans) {
      const result = { activations: plan.activations };
      works.push({ plan, cached, result });
      results[index] = result;
    }
  }

  model.bases.compute(needs, depth);
  for (const { plan } of works) for (const take of plan.takeFromBase) take();
  const changed: ChangedWork[] = [];
  const unchanged: Work[] = [];
  // There may be thousands of them, so that objects are written out and not put together from others.
  for (const { plan, cached, result } of works) {
    if (plan.change) changed.push({ plan, cached, result, change: plan.change });
    else unchanged.push({ plan, cached, result });
  }
  predict(model, request, unchanged);
  for (const group of splitBySize(changed, rowsOf, ROWS_AT_ONCE)) runChanged(model, request, group, depth);
}

function runChanged(model: Model, request: ForwardRequest, works: readonly ChangedWork[], depth: number) {
  const sequences = works.map(({ plan, change, cached }) => changedSequence(plan, change, cached));
  const { residual, stride } = model.layers.run(sequences, depth);
  const computed = works.map(({ cached, result }, index) => {
    const sequence = sequences[index] ?? missing('sequence of variant', index);
    return { cached, result, own: { first: sequence.first, address: residual(sequence), stride } };
  });
  predict(model, request, computed);
}

function promptsOf({ prompts, variants }: ForwardRequest): Prompt[] {
  const found = new Map<string, Prompt>();
  const known = prompts.map((tokens) => {
    const key = tokens.join();
    const prompt = found.get(key) ?? { tokens, variants: [] };
    found.set(key, prompt);
    return prompt;
  });
  (variants ?? eachOnce(prompts)).forEach((variant, index) => {
    known[variant.prompt]?.variants.push({ index, variant });
  });
  return [...found.values()].filter(({ variants }) => variants.length > 0);
}

/** The variants of a request that names none. */
export function eachOnce(prompts: ForwardRequest['prompts']): Variant[] {
  return prompts.map((_, prompt) => ({ prompt, interventions: [] }));
}

/** An upper bound on the residual streams that this request caches for a prompt. */
function residualsAtMost({ taps = [], variants = [] }: ForwardRequest): number {
  const layers = variants.flatMap(({ interventions }) => interventions.map(({ point }) => point.layer));
  return new Set(taps.map(({ point }) => point.layer)).size + new Set(layers).size + 2;
}

function rowsOf({ plan, change }: ChangedWork): number {
  return plan.tokens.length - change.first;
}
