/** Owns a run: prompts are computed once as they are, and their variants only from their first change on, many of them together. */

import type { RunRequest, Variant, VariantResult } from '../../core/engine.ts';
import type { BaseNeed } from './base-runs.ts';
import { inGroups } from './groups.ts';
import type { Change } from './interventions.ts';
import { ROWS_AT_ONCE } from './layers.ts';
import type { Model } from './model.ts';
import type { PromptRecord } from './prompt-records.ts';
import { laneOf, type Plan, planVariant, requestDepth } from './run-plan.ts';
import { predict } from './run-predictions.ts';

export function run(model: Model, request: RunRequest): VariantResult[] {
  const results: VariantResult[] = [];
  const residuals = residualsAtMost(request);
  const bytes = ({ tokens }: Prompt) => model.records.bytes(tokens.length, residuals);
  for (const prompts of inGroups(promptsOf(request), bytes, model.rooms.atOnce)) {
    runPrompts(model, request, prompts, results);
    model.records.trim();
  }
  return results;
}

/** A prompt, and its variants with their places among the results. */
interface Prompt {
  tokens: readonly number[];
  variants: { place: number; variant: Variant }[];
}

interface Work {
  plan: Plan;
  record: PromptRecord;
  result: VariantResult;
}

function runPrompts(model: Model, request: RunRequest, prompts: readonly Prompt[], results: VariantResult[]): void {
  const depth = requestDepth(request, model.spec.layers);
  const works: Work[] = [];
  const needs: BaseNeed[] = [];
  for (const { tokens, variants } of prompts) {
    const record = model.records.of(tokens);
    const need: BaseNeed = { record, residuals: new Set(), reads: [] };
    const plans = variants.map(({ place, variant }) => ({ place, plan: planVariant(model, variant, request, need) }));
    const isShared = plans.some(({ plan: { change } }) => !change || change.first > 0);
    if (request.surprise || (request.logits && isShared)) need.residuals.add(model.spec.layers);
    if (isShared || need.residuals.size > 0) needs.push(need);
    for (const { place, plan } of plans) {
      const result = { activations: plan.activations };
      works.push({ plan, record, result });
      results[place] = result;
    }
  }

  model.bases.compute(needs, depth);
  for (const { plan } of works) for (const take of plan.takeFromBase) take();
  const changed = works.flatMap(({ plan, ...rest }) => (plan.change ? [{ ...rest, plan, change: plan.change }] : []));
  const unchanged = works.filter(({ plan }) => !plan.change);
  predict(model, request, unchanged);
  for (const group of inGroups(changed, rowsOf, ROWS_AT_ONCE)) runChanged(model, request, group, depth);
}

function runChanged(model: Model, request: RunRequest, works: readonly (Work & { change: Change })[], depth: number) {
  const lanes = works.map(({ plan, change, record }) => laneOf(plan, change, record));
  const { residual, stride } = model.layers.run(lanes, depth);
  const computed = works.map(({ record, result }, index) => {
    const lane = lanes[index];
    return { record, result, ...(lane && { own: { first: lane.first, address: residual(lane), stride } }) };
  });
  predict(model, request, computed);
}

function promptsOf({ prompts, variants }: RunRequest): Prompt[] {
  const found = new Map<string, Prompt>();
  const known = prompts.map((tokens) => {
    const key = tokens.join();
    const prompt = found.get(key) ?? { tokens, variants: [] };
    found.set(key, prompt);
    return prompt;
  });
  (variants ?? eachOnce(prompts)).forEach((variant, place) => {
    known[variant.prompt]?.variants.push({ place, variant });
  });
  return [...found.values()].filter(({ variants }) => variants.length > 0);
}

/** The variants of a request that names none. */
export function eachOnce(prompts: RunRequest['prompts']): Variant[] {
  return prompts.map((_, prompt) => ({ prompt, interventions: [] }));
}

/** How many residual streams a prompt's record may come to hold by this request. */
function residualsAtMost({ taps = [], variants = [] }: RunRequest): number {
  const layers = variants.flatMap(({ interventions }) => interventions.map(({ point }) => point.layer));
  return new Set(taps.map(({ point }) => point.layer)).size + new Set(layers).size + 2;
}

function rowsOf({ plan, change }: Work & { change: Change }): number {
  return plan.tokens.length - change.first;
}
