/** Formats the record of a protocol run as an answer: the numbers that the verdict rests on, without the long lists. */

import type * as z from 'zod';
import { byClass, nameOfClass } from '../causality/classes.ts';
import type { SweepRow } from '../causality/common-evidence.ts';
import { rowAt } from '../causality/dataset.ts';
import { isSaturated } from '../causality/decide.ts';
import { stateOf } from '../causality/effect-states.ts';
import type { Effect, Evidence } from '../causality/evidence.ts';
import type { ProtocolRecord } from '../causality/verdict.ts';
import { missing } from '../core/missing.ts';
import type { causalityProtocol } from '../primitives/causality-protocol.ts';
import type { Interval } from '../statistics/bootstrap.ts';
import { mean } from '../statistics/summary.ts';
import { shownLabel } from './class-labels.ts';

type Answer = Omit<z.output<typeof causalityProtocol.output>, 'record' | 'record_file' | 'notes' | 'manifest_sha256'>;

/** `length` is the norm of the direction as it was given, which is the unit of doses in answers. */
export function verdictAnswer({ question, evidence, verdict }: ProtocolRecord, length: number): Answer {
  const { decodability, sweep, target, split, naming, structureMatched, multiplicity } = evidence;
  const rows = [...sweep.rows, ...sweep.asked];
  const { search } = evidence.direction;
  const baselines = {
    random_direction_mean: decodability.random.mean,
    random_direction_quantile_95: decodability.random.high,
    control_task_auroc: decodability.controlTask.auroc,
    permutation_p: decodability.permutation.p,
    strongest_baseline_mean: Math.max(decodability.random.mean, decodability.controlTask.auroc),
  };
  return {
    verdict: verdict.verdict,
    reason: verdict.reason,
    explanation: verdict.sentence,
    limits: verdict.limits,
    decision_path: verdict.path,
    real_auroc: decodability.auroc,
    real_auroc_interval: ends(decodability.interval),
    baselines,
    auroc_gap: decodability.auroc - baselines.strongest_baseline_mean,
    n_samples: split.test.length,
    rank: evidence.direction.basis?.length ?? 1,
    ...(search && {
      fitted: { recovered: search.recovered, axes: search.axes, n_samples: search.rows, steps: search.steps },
    }),
    behaviour_gap: evidence.behaviour.gap,
    target: targetAnswer(target, question.classes),
    effects: {
      steering: tested(evidence.steering),
      interchange: tested(evidence.interchange),
      ablation: tested(evidence.ablation),
      whole_activation: {
        value: evidence.interchange.full.value,
        interval: ends(evidence.interchange.full.interval),
      },
      is_saturated: isSaturated(evidence),
    },
    ...(verdict.wanted && {
      wanted: {
        ...(verdict.wanted.pairs !== undefined && { more_pairs: verdict.wanted.pairs }),
        ...(verdict.wanted.randomDirections !== undefined && { random_directions: verdict.wanted.randomDirections }),
      },
    }),
    examples: examplesOf(question, evidence),
    delta_rel_max: Math.max(...rows.map(({ deltaRelative }) => Math.abs(deltaRelative))),
    flip_rate_at_max_alpha: flipsAtMost(rows),
    structure_matched_auroc: structureMatched?.auroc ?? null,
    feature_named: naming.name !== undefined,
    checks_run: {
      random_feature_baseline: true,
      control_token_normalization: true,
      structural_rigidity_alpha_sweep: true,
      behaviour: true,
      steering: true,
      interchange: true,
      ablation: true,
      guards: true,
      multiplicity: true,
      structure_matched: structureMatched !== undefined,
      feature_naming: naming.required,
    },
    steering_results: rows.map((row) => ({
      alpha: row.dose.absolute / length,
      dose: row.dose,
      flip_rate: row.flips.rate,
      flip_rate_random: sweep.random.find(({ dose }) => dose.absolute === row.dose.absolute)?.flips.rate ?? null,
      delta_rel: row.deltaRelative,
      change: row.change,
      common_scale: row.commonScale,
    })),
    guards: {
      harm: evidence.harm.component,
      harm_of_whole_activation: evidence.harm.whole,
      effect_within_natural_differences: evidence.dormancy.within,
      effect_outside: evidence.dormancy.rest,
      on_manifold: evidence.dormancy.geometric,
      untold_temperatures: evidence.temperature.untold.rate,
    },
    specificity: {
      equal_shoves_that_do_as_much: evidence.specificity.doseMatched.asMuch.rate,
      perplexity_ratio: evidence.specificity.neutral.perplexityRatio,
      kl: evidence.specificity.neutral.divergence,
    },
    family: multiplicity.question,
    multiplicity: {
      error_rate: multiplicity.rate,
      level: multiplicity.level,
      spent: multiplicity.spent,
      is_stable: multiplicity.stable,
    },
    nulls: multiplicity.nulls,
  };
}

/** Both signs of the largest dose, pooled. */
function flipsAtMost(rows: SweepRow[]): number {
  const most = Math.max(...rows.map(({ dose }) => Math.abs(dose.absolute)));
  return mean(rows.filter(({ dose }) => Math.abs(dose.absolute) === most).map(({ flips }) => flips.rate));
}

function tested(effect: Effect) {
  const { value, interval, p, adjusted } = effect;
  return { state: stateOf(effect), value, interval: ends(interval), p, p_adjusted: adjusted };
}

/** What the model says next, before and after. */
function examplesOf({ dataset, classes }: ProtocolRecord['question'], { examples }: Evidence): Answer['examples'] {
  return examples.map(({ row, before, component, whole }) => ({
    prompt: rowAt(dataset, row).prompt,
    label: shownLabel(rowAt(dataset, row).label, classes),
    says: before.text,
    says_with_component_swapped: component.text,
    says_with_all_swapped: whole.text,
  }));
}

/** By class, where there are more than two or they have names. */
export function targetAnswer(target: Evidence['target'], names: readonly string[] | undefined): Answer['target'] {
  const words = byClass(target).map((tokens) => tokens.map(({ text }) => text));
  const [negative = missing('class', 0), positive = missing('class', 1)] = words;
  if (!names && words.length === 2) return { positive, negative, chosen: target.chosen };
  const classes = Object.fromEntries(words.map((own, label) => [nameOfClass(names, label), own]));
  return { classes, chosen: target.chosen };
}

export function ends({ low, high }: Interval): number[] {
  return [low, high];
}
