/** Decides the verdict, as a pure function of the evidence: the first row of the decision table that matches. */

import { isConfounded, isDecodable, isExpressed } from './conditions.ts';
import { decodabilityFound, firstMatch, type Row, structureFound, sweepFound } from './decision-table.ts';
import { type EffectState, isEquivalent, stateOf } from './effect-states.ts';
import type { Effect, Evidence } from './evidence.ts';
import { type FirstEvidence, firstEditionTable } from './first-edition.ts';
import { shortfallOf } from './shortfall.ts';
import {
  DISPENSABLE,
  FEWEST_FLIPPABLE,
  HALF,
  HARM,
  INERT,
  LEAST_FLIPS,
  LEAST_GAP,
  LEAST_HARM,
  MOST,
  OTHER_WORDS,
  REDUNDANT,
  UNTOLD,
} from './thresholds.ts';
import type { Verdict, VerdictReason } from './verdict.ts';
import { effectShare, percent, sentenceOf, toThreeDigits } from './verdict-text.ts';

/** Evidence of the first edition is decided by its own rules. */
export function decide(evidence: Evidence | FirstEvidence): Verdict {
  return firstMatch(evidence.format === 2 ? firstEditionTable(evidence) : table(evidence), evidence);
}

function* table(evidence: Evidence): Generator<Row> {
  const { behaviour, steering, interchange, ablation, temperature, sweep } = evidence;
  const told = (reason: VerdictReason) => () => sentenceOf(reason, evidence);
  const states = { S: stateOf(steering), I: stateOf(interchange), N: stateOf(ablation) };
  const effects = `S = ${shown(steering)}, I = ${shown(interchange)}, N = ${shown(ablation)}`;

  yield {
    condition: "The AUROC's interval goes down to 0.60, or its permutation p is 0.05 or more",
    because: decodabilityFound(evidence),
    matched: !isDecodable(evidence.decodability),
    verdict: 'undetermined',
    reason: 'not-decodable',
    sentence: told('not-decodable'),
  };
  yield {
    condition: 'On the structure-matched set the margin over 0.5 is less than half, or its interval includes 0.5',
    because: structureFound(evidence),
    matched: isConfounded(evidence.decodability, evidence.structureMatched),
    verdict: 'undetermined',
    reason: 'confounded-structural',
    sentence: told('confounded-structural'),
  };
  yield {
    condition: `The interval of the natural gap between the classes reaches below ${LEAST_GAP} logits`,
    because: `G = ${toThreeDigits(behaviour.gap)} [${toThreeDigits(behaviour.interval.low)}, ${toThreeDigits(behaviour.interval.high)}]`,
    matched: !isExpressed(behaviour),
    verdict: 'undetermined',
    reason: 'behaviour-not-expressed',
    sentence: told('behaviour-not-expressed'),
  };
  const { full } = interchange;
  yield {
    condition:
      'Swapping the whole activation has no effect (all of its interval is within 0.1), and neither S nor I is present',
    because: `I_full = ${effectShare(full.value)} [${effectShare(full.interval.low)}, ${effectShare(full.interval.high)}]; ${effects}`,
    matched: isEquivalent(full.interval) && states.S !== 'present' && states.I !== 'present',
    verdict: 'epiphenomenal-template',
    reason: 'site-locked',
    sentence: told('site-locked'),
  };
  const { untold, untoldAtRandom } = temperature;
  const vague = `in ${untold.count} of ${untold.of} runs along the direction, and in ${untoldAtRandom.count} of ${untoldAtRandom.of} along random ones`;
  yield {
    condition: `In more than ${percent(UNTOLD)} of the runs, the control tokens do not tell the temperature`,
    because: vague,
    matched: !(untold.rate <= UNTOLD && untoldAtRandom.rate <= UNTOLD),
    verdict: 'undetermined',
    reason: 'temperature-unknown',
    sentence: () =>
      `An effect cannot be told from a change of temperature: the control tokens do not tell it ${vague}. Other control tokens may.`,
  };
  const lacking = lackingForCausal(evidence, states);
  yield {
    condition:
      'I and N are present and at least 0.6, S is present with the same sign (and at least 0.5 unless the read-out saturates), at least 10 % of the answers that can flip do, the direction is not dormant, the harm is at most twice that of the whole activation, and there is a name if one is required',
    because: lacking.join('; ') || effects,
    matched: lacking.length === 0,
    verdict: 'causal',
    reason: 'sufficient-and-necessary',
    sentence: told('sufficient-and-necessary'),
  };
  const unknown = Object.entries(states).flatMap(([name, state]) => (state === 'unknown' ? [name] : []));
  const wanted = shortfallOf(evidence);
  yield {
    condition: 'All that is missing for the row above is that an effect of that size is neither present nor absent',
    because: effects,
    matched: isCausalButUnshown(evidence, states),
    verdict: 'undetermined',
    reason: 'underpowered',
    sentence: () => unshownSentence(unknown, effects, wanted),
    wanted,
  };
  const weak = weakReason(evidence, states);
  yield {
    condition: 'S or I is present',
    because: effects,
    matched: states.S === 'present' || states.I === 'present',
    verdict: 'weak-causal',
    reason: weak,
    sentence: () => weakSentence(weak, evidence),
  };
  yield {
    condition: 'S, I or N is neither present nor absent',
    because: effects,
    matched: unknown.length > 0,
    verdict: 'undetermined',
    reason: 'underpowered',
    sentence: () => underpoweredSentence(unknown, effects, wanted),
    wanted,
  };
  yield {
    condition:
      'All are absent, and the sweep changes logits by more than 2 %, at least half of it by one common factor',
    because: sweepFound(evidence),
    matched: sweep.change > INERT && sweep.commonScale >= HALF,
    verdict: 'epiphenomenal-softmax',
    reason: 'uniform-rescale',
    sentence: told('uniform-rescale'),
  };
  yield {
    condition: 'All are absent, and the sweep changes logits by 2 % or less throughout',
    because: sweepFound(evidence),
    matched: sweep.change <= INERT,
    verdict: 'epiphenomenal-template',
    reason: 'direction-inert',
    sentence: told('direction-inert'),
  };
  yield {
    condition: 'None of the above',
    because: sweepFound(evidence),
    matched: true,
    verdict: 'undetermined',
    reason: 'effect-not-specific',
    sentence: told('effect-not-specific'),
  };
}

type States = Record<'S' | 'I' | 'N', EffectState>;

/** The conditions of a causal verdict that are not met. */
function lackingForCausal(evidence: Evidence, states: States): string[] {
  const { steering, interchange, ablation, naming, dormancy } = evidence;
  const needed = isSaturated(evidence) ? 0 : HALF;
  const isEnough = (state: EffectState, { value }: Effect, least: number) =>
    state === 'present' && value >= least && value > 0;
  return [
    ...(isEnough(states.I, interchange, MOST) ? [] : [`I = ${shown(interchange)}`]),
    ...(isEnough(states.N, ablation, MOST) ? [] : [`N = ${shown(ablation)}`]),
    ...(isEnough(states.S, steering, needed) ? [] : [`S = ${shown(steering)}`]),
    ...(isEquivalent(interchange.full.interval)
      ? [`swapping the whole activation moves ${effectShare(interchange.full.value)}`]
      : []),
    ...(answersFlip(evidence) ? [] : [flipsFound(evidence)]),
    ...(isDormant(evidence)
      ? [`outside of natural differences ${effectShare(dormancy.rest)}, within them ${effectShare(dormancy.within)}`]
      : []),
    ...(isHarmful(evidence) ? [harmFound(evidence)] : []),
    ...(naming.required && !naming.name ? ['no name was given'] : []),
  ];
}

/** Whether it would be causal if every effect that is unknown were present with the value that was measured, and one of S and I is. */
function isCausalButUnshown(evidence: Evidence, states: States): boolean {
  const asIfShown = (state: EffectState): EffectState => (state === 'unknown' ? 'present' : state);
  const supposed = { S: asIfShown(states.S), I: asIfShown(states.I), N: asIfShown(states.N) };
  return (states.S === 'present' || states.I === 'present') && lackingForCausal(evidence, supposed).length === 0;
}

/** The first of the reasons, by weight, that keep the verdict from causal. */
function weakReason(evidence: Evidence, states: States): VerdictReason {
  const { steering, interchange, ablation, naming } = evidence;
  const against = states.I === 'present' ? interchange : steering;
  if (against.value < 0) return 'acts-against-label';
  if (isDormant(evidence)) return 'possible-dormant-pathway';
  if ((states.N === 'absent' || ablation.value < DISPENSABLE) && interchange.value >= REDUNDANT)
    return 'redundant-pathway';
  if (isHarmful(evidence)) return 'off-manifold-only';
  const unnamed = naming.required && !naming.name;
  return unnamed && lackingForCausal(evidence, states).length === 1 ? 'unnamed' : 'partial-mediator';
}

function weakSentence(reason: VerdictReason, evidence: Evidence): string {
  const { steering, interchange, dormancy, target } = evidence;
  const against = target.others
    ? 'what goes with a class makes the answers of others likelier'
    : 'what goes with label 1 makes the answer of label 0 likelier';
  if (reason === 'acts-against-label')
    return `The direction moves the behaviour against its label: ${against} (S = ${effectShare(steering.value)}, I = ${effectShare(interchange.value)}). Something else makes up for it.`;
  if (reason === 'possible-dormant-pathway')
    return `The direction has an effect, but most of it (${effectShare(dormancy.rest)}, against ${effectShare(dormancy.within)}) comes from where counterfactuals never differ: it may come from a pathway that is dormant in natural data.`;
  if (reason === 'off-manifold-only')
    return `The direction has an effect, but its component does more to everything else than a natural swap does: ${harmFound(evidence)}.`;
  if (reason === 'partial-mediator' && interchange.value >= MOST && !answersFlip(evidence))
    return `The direction moves the difference between the target words (S = ${effectShare(steering.value)}, I = ${effectShare(interchange.value)}), but not for certain what the model says: ${flipsFound(evidence)}.`;
  return sentenceOf(reason, evidence);
}

type Wanted = Verdict['wanted'] & {};

function underpoweredSentence(unknown: string[], effects: string, wanted: Wanted): string {
  return `Whether the direction has an effect is neither shown nor excluded (${unknown.join(', ')} unknown: ${effects}); ${adviceFor(wanted)}.`;
}

function unshownSentence(unknown: string[], effects: string, wanted: Wanted): string {
  return `The direction acts on the behaviour, but whether it is both sufficient and necessary is not shown (${unknown.join(', ')} unknown: ${effects}); ${adviceFor(wanted)}.`;
}

function adviceFor({ pairs, randomDirections }: Wanted): string {
  const more = [
    ...(pairs === undefined ? [] : [`about ${pairs} more pairs of prompts`]),
    ...(randomDirections === undefined ? [] : [`${randomDirections} random directions`]),
  ];
  return more.length > 0
    ? `${more.join(' and ')} would settle it`
    : 'random directions do as much too often, and more of them or of the prompts would not settle it';
}

/** A further step beyond the class mean moves less than half of what the step to it did. */
export function isSaturated({ steering: { saturation } }: Evidence): boolean {
  return Math.abs(saturation.beyond) < HALF * Math.abs(saturation.within);
}

/** What lies outside of natural differences carries more than half of the effect. */
export function isDormant({ dormancy: { within, rest } }: Evidence): boolean {
  return Math.abs(rest) > Math.abs(within);
}

/** Swapping the component changes the rest of the distribution by more than twice what swapping the whole activation does. */
export function isHarmful({ harm: { component, whole } }: Evidence): boolean {
  return component > LEAST_HARM && component > HARM * whole;
}

/** Where too few answers can flip by nature, the behaviour must at least be about the target words. */
export function answersFlip(evidence: Evidence): boolean {
  const { answerFlips } = evidence.interchange;
  return answerFlips.of >= FEWEST_FLIPPABLE ? answerFlips.rate >= LEAST_FLIPS : isAboutTarget(evidence);
}

/** The model mostly answers with target words, or tells the classes apart by them more than by other words. Words that were chosen because they differ most show nothing by differing more. */
function isAboutTarget({ interchange: { answers }, specificity: { otherWords }, target }: Evidence): boolean {
  const isSpecific = target.chosen === 'given' && otherWords !== undefined && otherWords.rate <= OTHER_WORDS;
  return answers.rate >= HALF || isSpecific;
}

function flipsFound({ interchange: { answerFlips, answers }, specificity: { otherWords } }: Evidence): string {
  if (answerFlips.of >= FEWEST_FLIPPABLE)
    return `${percent(answerFlips.rate)} of the ${answerFlips.of} answers that can flip do`;
  const others = otherWords
    ? `, and ${percent(otherWords.rate)} of other words differ as much between the classes`
    : '';
  return `${percent(answers.rate)} of the answers are target words${others}`;
}

function harmFound({ harm }: Evidence): string {
  return `swapping the component moves the other tokens by ${toThreeDigits(harm.component)} nats, swapping the whole activation by ${toThreeDigits(harm.whole)}`;
}

function shown(effect: Effect): string {
  const { value, interval, adjusted } = effect;
  return `${effectShare(value)} [${effectShare(interval.low)}, ${effectShare(interval.high)}] (${stateOf(effect)}, adjusted p ${toThreeDigits(adjusted)})`;
}
