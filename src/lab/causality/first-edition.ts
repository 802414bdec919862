/** Reads evidence of the protocol's first edition (format 2), and decides it by the rules that it was made for. New evidence is decided by `decide.ts`. */

import * as z from 'zod';
import { commonEvidence, share } from './common-evidence.ts';
import { isConfounded, isDecodable } from './conditions.ts';
import { decodabilityFound, type Row, structureFound, sweepFound } from './decision-table.ts';
import type { VerdictReason } from './verdict.ts';
import { effectShare, percent, sentenceOf, toThreeDigits } from './verdict-text.ts';

const effect = z.looseObject({ value: z.number(), adjusted: z.number() });

/** What the decision rests on; everything else is kept as it was stored. */
export const firstEvidenceSchema = commonEvidence.extend({
  format: z.literal(2),
  steering: effect,
  interchange: effect.extend({ full: z.number(), answerFlips: share }),
  ablation: effect,
  temperature: z.looseObject({ clamped: z.number().int() }),
  multiplicity: z.object({
    family: z.number().int(),
    tests: z.number().int(),
    nulls: z.number().int(),
    needed: z.number().int(),
  }),
  guards: z.looseObject({
    onManifold: z.looseObject({ value: z.number() }),
    neutral: z.looseObject({ perplexityRatio: z.number(), divergence: z.number() }),
  }),
});

export type FirstEvidence = z.infer<typeof firstEvidenceSchema>;

export function* firstEditionTable(evidence: FirstEvidence): Generator<Row> {
  const { behaviour, steering, interchange, sweep, multiplicity } = evidence;
  const told = (reason: VerdictReason) => () => sentenceOf(reason, evidence);
  const row = (
    verdict: Row['verdict'],
    reason: VerdictReason,
    matched: boolean,
    condition: string,
    because: string,
    sentence = told(reason),
  ): Row => ({ verdict, reason, matched, condition, because, sentence });

  yield row(
    'undetermined',
    'not-decodable',
    !isDecodable(evidence.decodability),
    "The AUROC's interval goes down to 0.60, or its permutation p is 0.05 or more",
    decodabilityFound(evidence),
  );
  yield row(
    'undetermined',
    'confounded-structural',
    isConfounded(evidence.decodability, evidence.structureMatched),
    'On the structure-matched set the margin over 0.5 is less than half, or its interval includes 0.5',
    structureFound(evidence),
  );
  yield row(
    'undetermined',
    'behaviour-not-expressed',
    !(Math.abs(behaviour.gap) >= 0.1),
    'The natural gap between the classes is less than 0.1 logits',
    `G = ${toThreeDigits(behaviour.gap)}`,
  );
  const { nulls, needed, tests } = multiplicity;
  yield row(
    'undetermined',
    'insufficient-nulls',
    nulls < needed,
    'There are too few random directions for the number of tests',
    `${nulls} random directions, ${needed} needed for ${tests} tests`,
    () =>
      `With ${tests} tests in this lab session, ${needed} random directions are needed and ${nulls} were used: no effect could be significant.`,
  );
  yield row(
    'epiphenomenal-template',
    'site-locked',
    interchange.full < 0.1 && !isFound(steering),
    'Less than 0.1 of the behaviour passes through the site, and steering has no effect',
    `I_full = ${effectShare(interchange.full)}, S = ${shown(steering)}`,
  );
  const missing = missingForCausal(evidence);
  yield row(
    'causal',
    'sufficient-and-necessary',
    missing.length === 0,
    'S, I and N are significant and at least 0.5, at least 10 % of the answers flip at the natural dose, the scale of the logits is known in every run, the direction lies on the manifold by 0.6 or more, the guards pass, and it has a name if one is required',
    missing.join('; ') || `S = ${shown(steering)}, I = ${shown(interchange)}, N = ${shown(evidence.ablation)}`,
  );
  const reason = weakReason(evidence);
  yield row(
    'weak-causal',
    reason,
    isPartial(steering) || isPartial(interchange),
    'S or I is significant and at least 0.05',
    `S = ${shown(steering)}, I = ${shown(interchange)}`,
    () => weakSentence(reason, evidence),
  );
  yield row(
    'epiphenomenal-softmax',
    'uniform-rescale',
    sweep.change > 0.02 && sweep.commonScale >= 0.5,
    'The sweep changes logits by more than 2 %, at least half of it by one common factor',
    sweepFound(evidence),
  );
  yield row(
    'epiphenomenal-template',
    'direction-inert',
    sweep.change <= 0.02,
    'The sweep changes logits by 2 % or less throughout',
    sweepFound(evidence),
  );
  yield row('undetermined', 'effect-not-specific', true, 'None of the above', sweepFound(evidence));
}

/** The conditions of a causal verdict that are not met. */
function missingForCausal({ steering, interchange, ablation, temperature, guards, naming }: FirstEvidence): string[] {
  const tests = Object.entries({ S: steering, I: interchange, N: ablation });
  const flips = interchange.answerFlips.rate;
  return [
    ...tests.flatMap(([name, test]) => (isFound(test) && test.value >= 0.5 ? [] : [`${name} = ${shown(test)}`])),
    ...(flips >= 0.1 ? [] : [`${percent(flips)} of the answers flip`]),
    ...(temperature.clamped === 0 ? [] : [`in ${temperature.clamped} runs the scale of the logits cannot be told`]),
    ...(guards.onManifold.value >= 0.6 ? [] : [`on-manifold ${toThreeDigits(guards.onManifold.value)}`]),
    ...(isHarmless(guards) ? [] : [harmFound(guards)]),
    ...(naming.required && !naming.name ? ['no name was given'] : []),
  ];
}

/** The first of the reasons, by weight, that keep the verdict from causal. */
function weakReason({ steering, interchange, ablation, guards, naming }: FirstEvidence): VerdictReason {
  if (guards.onManifold.value < 0.6) return 'possible-dormant-pathway';
  if (ablation.value < 0.2 && interchange.value >= 0.25) return 'redundant-pathway';
  if (!isPartial(interchange)) return 'off-manifold-only';
  const strong = [steering, interchange, ablation].every((test) => isFound(test) && test.value >= 0.5);
  if (!strong || !(interchange.answerFlips.rate >= 0.1)) return 'partial-mediator';
  return isHarmless(guards) && naming.required && !naming.name ? 'unnamed' : 'off-manifold-only';
}

function weakSentence(reason: VerdictReason, evidence: FirstEvidence): string {
  const { guards, interchange } = evidence;
  if (reason === 'possible-dormant-pathway')
    return `The direction has an effect, but only ${toThreeDigits(guards.onManifold.value)} of it lies where activations vary: the effect may come from a pathway that sleeps in natural data.`;
  if (reason === 'off-manifold-only')
    return `The direction has an effect, but not at a harmless natural dose: I = ${effectShare(interchange.value)}; ${harmFound(guards)}.`;
  return sentenceOf(reason, evidence);
}

interface Tested {
  value: number;
  adjusted: number;
}

/** The smallest possible p value equals the bound by design, and must not fail by rounding. */
function isFound(test: Tested): boolean {
  return test.adjusted <= 0.05 + 1e-9;
}

function isPartial(test: Tested): boolean {
  return isFound(test) && test.value >= 0.05;
}

function isHarmless({ neutral }: FirstEvidence['guards']): boolean {
  return neutral.perplexityRatio <= 1.5 && neutral.divergence <= 0.1;
}

function harmFound({ neutral }: FirstEvidence['guards']): string {
  return `on neutral text, perplexity × ${toThreeDigits(neutral.perplexityRatio)} and ${toThreeDigits(neutral.divergence)} nats`;
}

function shown(test: Tested): string {
  return `${effectShare(test.value)} (adjusted p ${toThreeDigits(test.adjusted)})`;
}
