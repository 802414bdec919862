/** Decides the verdict, as a pure function of the evidence: the first row of the decision table that matches. */

import type { Evidence } from './evidence.ts';
import { DIVERGENCE, LEAST_GAP, ON_MANIFOLD, PERPLEXITY_RATIO, SIGNIFICANCE } from './thresholds.ts';
import type { Verdict, VerdictName, VerdictReason } from './verdict.ts';
import { effectShare, limitsOf, sentenceOf, toThreeDigits } from './verdict-text.ts';

interface Row {
  condition: string;
  /** What was measured, whether the row matches or not. */
  because: string;
  matched: boolean;
  verdict: VerdictName;
  reason: VerdictReason;
}

export function decide(evidence: Evidence): Verdict {
  const path: Verdict['path'] = [];
  for (const row of table(evidence)) {
    const { condition, because, matched, verdict, reason } = row;
    path.push({ condition, matched, because });
    if (!matched) continue;
    return { verdict, reason, sentence: sentenceOf(reason, evidence), path, limits: limitsOf(verdict, evidence) };
  }
  throw new Error('The last row of the decision table matches always.');
}

function* table(evidence: Evidence): Generator<Row> {
  const { decodability, behaviour, steering, interchange, ablation, sweep, guards, multiplicity } = evidence;

  yield {
    condition: "The AUROC's interval goes down to 0.60, or its permutation p is 0.05 or more",
    because: `AUROC ${toThreeDigits(decodability.auroc)} with 95 % interval ${toThreeDigits(decodability.interval.low)} to ${toThreeDigits(decodability.interval.high)}, permutation p ${toThreeDigits(decodability.permutation.p)}`,
    matched: !(decodability.interval.low > 0.6 && decodability.permutation.p < SIGNIFICANCE),
    verdict: 'undetermined',
    reason: 'not-decodable',
  };
  yield structureRow(evidence);
  yield {
    condition: `The natural gap between the classes is less than ${LEAST_GAP} logits`,
    because: `G = ${toThreeDigits(behaviour.gap)}`,
    matched: !(Math.abs(behaviour.gap) >= LEAST_GAP),
    verdict: 'undetermined',
    reason: 'behaviour-not-expressed',
  };
  yield {
    condition: 'There are too few random directions for the number of tests',
    because: `${multiplicity.nulls} random directions, ${multiplicity.needed} needed for ${multiplicity.tests} tests`,
    matched: multiplicity.nulls < multiplicity.needed,
    verdict: 'undetermined',
    reason: 'insufficient-nulls',
  };
  yield {
    condition: 'Less than 0.1 of the behaviour passes through the site, and steering has no effect',
    because: `I_full = ${effectShare(interchange.full)}, S = ${effect(steering)}`,
    matched: interchange.full < 0.1 && !isSignificant(steering),
    verdict: 'epiphenomenal-template',
    reason: 'site-locked',
  };
  const missing = missingForCausal(evidence);
  yield {
    condition:
      'S, I and N are significant and at least 0.5, at least 10 % of the answers flip at the natural dose, the scale of the logits is known in every run, the direction lies on the manifold by 0.6 or more, the guards pass, and it has a name if one is required',
    because:
      missing.length === 0
        ? `S = ${effect(steering)}, I = ${effect(interchange)}, N = ${effect(ablation)}`
        : missing.join('; '),
    matched: missing.length === 0,
    verdict: 'causal',
    reason: 'sufficient-and-necessary',
  };
  yield {
    condition: 'S or I is significant and at least 0.05',
    because: `S = ${effect(steering)}, I = ${effect(interchange)}`,
    matched: isPartial(steering) || isPartial(interchange),
    verdict: 'weak-causal',
    reason: weakReason(evidence),
  };
  const moved = `‖Δlogit‖/‖logit‖ is up to ${toThreeDigits(sweep.change)} in the sweep, of which one common factor explains ${toThreeDigits(sweep.commonScale)}`;
  yield {
    condition: 'The sweep changes logits by more than 2 %, at least half of it by one common factor',
    because: moved,
    matched: sweep.change > 0.02 && sweep.commonScale >= 0.5,
    verdict: 'epiphenomenal-softmax',
    reason: 'uniform-rescale',
  };
  yield {
    condition: 'The sweep changes logits by 2 % or less throughout',
    because: moved,
    matched: sweep.change <= 0.02,
    verdict: 'epiphenomenal-template',
    reason: 'direction-inert',
  };
  yield {
    condition: 'None of the above',
    because: `${moved}; guards: on-manifold ${toThreeDigits(guards.onManifold.value)}`,
    matched: true,
    verdict: 'undetermined',
    reason: 'effect-not-specific',
  };
}

function structureRow({ decodability, structureMatched }: Evidence): Row {
  const row = {
    condition: 'On the structure-matched set the margin over 0.5 is less than half, or its interval includes 0.5',
    verdict: 'undetermined',
    reason: 'confounded-structural',
  } as const;
  if (!structureMatched) return { ...row, because: 'no structure-matched set was given', matched: false };
  const { auroc, interval } = structureMatched;
  const half = auroc - 0.5 < (decodability.auroc - 0.5) / 2;
  return {
    ...row,
    because: `AUROC ${toThreeDigits(auroc)} with 95 % interval ${toThreeDigits(interval.low)} to ${toThreeDigits(interval.high)} there, ${toThreeDigits(decodability.auroc)} on the dataset`,
    matched: half || interval.low <= 0.5,
  };
}

/** The conditions of a causal verdict that are not met. */
function missingForCausal({ steering, interchange, ablation, temperature, guards, naming }: Evidence): string[] {
  const tests = { S: steering, I: interchange, N: ablation };
  const { onManifold, neutral } = guards;
  return [
    ...Object.entries(tests).flatMap(([name, test]) =>
      isSignificant(test) && test.value >= 0.5 ? [] : [`${name} = ${effect(test)}`],
    ),
    ...(interchange.answerFlips.rate >= 0.1 ? [] : [`${percent(interchange.answerFlips.rate)} of the answers flip`]),
    ...(temperature.clamped === 0 ? [] : [`in ${temperature.clamped} runs the scale of the logits cannot be told`]),
    ...(onManifold.value >= ON_MANIFOLD ? [] : [`on-manifold ${toThreeDigits(onManifold.value)}`]),
    ...(guardsPass({ neutral })
      ? []
      : [
          `on neutral text, perplexity × ${toThreeDigits(neutral.perplexityRatio)} and ${toThreeDigits(neutral.divergence)} nats`,
        ]),
    ...(naming.required && !naming.name ? ['no name was given'] : []),
  ];
}

/** The first of the reasons, by weight, that keep the verdict from causal. */
function weakReason({ steering, interchange, ablation, guards, naming }: Evidence): VerdictReason {
  if (guards.onManifold.value < ON_MANIFOLD) return 'possible-dormant-pathway';
  if (ablation.value < 0.2 && interchange.value >= 0.25) return 'redundant-pathway';
  if (!isPartial(interchange)) return 'off-manifold-only';
  const strong = [steering, interchange, ablation].every((test) => isSignificant(test) && test.value >= 0.5);
  if (strong && interchange.answerFlips.rate >= 0.1) {
    return guardsPass(guards) && naming.required && !naming.name ? 'unnamed' : 'off-manifold-only';
  }
  return 'partial-mediator';
}

interface Tested {
  value: number;
  adjusted: number;
}

/** The smallest possible p value equals the bound by design, and must not fail by rounding. */
function isSignificant(test: Tested): boolean {
  return test.adjusted <= SIGNIFICANCE + 1e-9;
}

function isPartial(test: Tested): boolean {
  return isSignificant(test) && test.value >= 0.05;
}

function guardsPass({ neutral }: Pick<Evidence['guards'], 'neutral'>): boolean {
  return neutral.perplexityRatio <= PERPLEXITY_RATIO && neutral.divergence <= DIVERGENCE;
}

function effect(test: Tested): string {
  return `${effectShare(test.value)} (adjusted p ${toThreeDigits(test.adjusted)})`;
}

function percent(rate: number): string {
  return `${Math.round(100 * rate)} %`;
}
