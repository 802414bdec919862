/** Defines `causality_protocol`: whether the model uses a direction, by a fixed set of measurements. */

import * as z from 'zod';
import * as fields from './fields.ts';
import { definePrimitive } from './primitive.ts';

const dose = z.object({ absolute: z.number(), swing: z.number(), norm: z.number() });
const tested = z.object({
  /** Present, absent or unknown. */
  state: z.string(),
  value: z.number(),
  interval: z.array(z.number()),
  p: z.number(),
  p_adjusted: z.number(),
});

export const causalityProtocol = definePrimitive({
  name: 'causality_protocol',
  title: 'Causality protocol',
  description:
    'Does the model use this direction? Decodability, steering, interchange and ablation against random directions, with corrections and guards. ' +
    'Verdict: causal, weak-causal, epiphenomenal-softmax, epiphenomenal-template or undetermined, with its reason. Wants 12 labelled prompts a class or more, best in counterfactual pairs.',
  route: { method: 'POST', path: '/causality-protocol' },
  effect: 'keeps',
  input: z.object({
    probe_id: z.string().max(200).optional().describe('The direction; or fit.'),
    with_probe_ids: z.array(z.string()).max(64).optional().describe('More: tests the span of all.'),
    capture_id: fields.captureId,
    labels: fields.labels.optional().describe("Default: the capture's."),
    fit: fields.fit.optional().describe('Finds the direction in half of the data.'),
    rank: fields.rank,
    layer: fields.layer.optional(),
    position: fields.position.optional(),
    positive_tokens: fields.words
      .optional()
      .describe('Next tokens that label 1 makes likelier; default: found in the data.'),
    negative_tokens: fields.words.optional().describe('For label 0.'),
    class_tokens: fields.classTokens,
    control_tokens: z.array(z.string()).max(1000).optional().describe('They tell a change of temperature.'),
    neutral_prompts: z.array(z.string()).max(1000).optional().describe('Unrelated text.'),
    alpha_sweep: z.array(z.number()).min(1).max(50).optional().describe('Default: ±0.5, 1, 2 residual norms.'),
    alpha_unit: z.enum(['absolute', 'swing', 'norm']).optional().describe('Default absolute.'),
    n_random_seeds: z.number().int().min(1).max(20_000).default(5).describe('Random directions at first, 99 or more.'),
    nulls: z.number().int().min(19).max(20_000).optional().describe('Random directions exactly.'),
    structure_matched_capture_id: fields.captureId.optional().describe('Prompts whose classes share their wording.'),
    structure_matched_labels: fields.labels.optional(),
    feature_name: z.string().max(500).optional().describe('What it stands for.'),
    require_name: z.boolean().default(false).describe('Without one, not causal.'),
    include_evidence: z.boolean().default(false).describe('All numbers.'),
    seed: fields.seed,
  }),
  output: z.object({
    verdict: z.string(),
    reason: z.string(),
    explanation: z.string(),
    limits: z.array(z.string()),
    decision_path: z.array(z.object({ condition: z.string(), matched: z.boolean(), because: z.string() })),
    real_auroc: z.number(),
    real_auroc_interval: z.array(z.number()),
    baselines: z.object({
      random_direction_mean: z.number(),
      random_direction_quantile_95: z.number(),
      control_task_auroc: z.number(),
      permutation_p: z.number(),
      strongest_baseline_mean: z.number(),
    }),
    auroc_gap: z.number(),
    n_samples: z.number(),
    /** Dimensions of what was tested: 1 for a direction. */
    rank: z.number(),
    /** Of fit: interchange, in the discovery half: the share of the behaviour that swapping the subspace recovers there. */
    fitted: z.object({ recovered: z.number(), axes: z.number(), n_samples: z.number(), steps: z.number() }).optional(),
    behaviour_gap: z.number(),
    target: fields.shownTarget,
    effects: z.object({
      steering: tested,
      interchange: tested,
      ablation: tested,
      whole_activation: z.object({ value: z.number(), interval: z.array(z.number()) }),
      /** Whether the read-out moves less beyond the class means than between them. */
      is_saturated: z.boolean(),
    }),
    /** What would settle an underpowered question. */
    wanted: z.object({ more_pairs: z.number().optional(), random_directions: z.number().optional() }).optional(),
    /** The first prompts of each class: the likeliest next token before and after. */
    examples: z.array(
      z.object({
        prompt: z.string(),
        label: z.union([z.number(), z.string()]),
        says: z.string(),
        says_with_component_swapped: z.string(),
        says_with_all_swapped: z.string(),
      }),
    ),
    delta_rel_max: z.number(),
    flip_rate_at_max_alpha: z.number(),
    structure_matched_auroc: z.number().nullable(),
    feature_named: z.boolean(),
    checks_run: z.record(z.string(), z.boolean()),
    steering_results: z.array(
      z.object({
        alpha: z.number(),
        dose,
        flip_rate: z.number(),
        flip_rate_random: z.number().nullable(),
        delta_rel: z.number(),
        change: z.number(),
        common_scale: z.number(),
      }),
    ),
    /** Harm in nats to all but the target tokens; shares of the behaviour; the share of the direction in natural differences. */
    guards: z.object({
      harm: z.number(),
      harm_of_whole_activation: z.number(),
      effect_within_natural_differences: z.number(),
      effect_outside: z.number(),
      on_manifold: z.number(),
      untold_temperatures: z.number(),
    }),
    /** These decide nothing: what random directions do with the same displacement, and what the dose does to neutral text. */
    specificity: z.object({
      equal_shoves_that_do_as_much: z.number(),
      perplexity_ratio: z.number(),
      kl: z.number(),
    }),
    /** Which question of this lab session it is, and the error rate that it may spend. */
    family: z.number(),
    multiplicity: z.object({
      error_rate: z.number(),
      level: z.number(),
      spent: z.number(),
      /** Whether more random directions would change no state of an effect. */
      is_stable: z.boolean(),
    }),
    /** The random directions that each effect was compared with. */
    nulls: z.number(),
    /** With its question and verdict; only if asked for. */
    record: z.record(z.string(), z.unknown()).optional(),
    /** Where the lab keeps the record. */
    record_file: z.string(),
    notes: fields.notes,
    manifest_sha256: fields.manifest,
  }),
});
