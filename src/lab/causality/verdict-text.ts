/** Writes a verdict and its limits as sentences. */

import { missing } from '../core/missing.ts';
import type { CommonEvidence } from './common-evidence.ts';
import type { VerdictName, VerdictReason } from './verdict.ts';

/** Formats a number with three significant digits. */
export function toThreeDigits(value: number): string {
  return String(Number(value.toPrecision(3)));
}

/** Formats the share of an effect; beyond the fourth decimal is noise. */
export function effectShare(value: number): string {
  return toThreeDigits(Math.round(value * 1e4) / 1e4);
}

export function percent(rate: number): string {
  return `${Math.round(100 * rate)} %`;
}

/** What sentences are made of, in evidence of every edition. */
export interface Told extends CommonEvidence {
  steering: { value: number };
  interchange: { value: number; full: number | { value: number } };
  ablation: { value: number };
}

/** The sentence of a reason that rests on nothing but what every edition measures. */
export function sentenceOf(reason: VerdictReason, evidence: Told): string {
  const write = SENTENCES[reason] ?? missing('sentence for the reason', reason);
  return write(evidence);
}

const SENTENCES: Partial<Record<VerdictReason, (evidence: Told) => string>> = {
  'not-decodable': ({ decodability: { auroc, interval } }) =>
    `The classes cannot be told apart along this direction on rows that it was not found in (AUROC ${toThreeDigits(auroc)}, 95 % interval ${toThreeDigits(interval.low)} to ${toThreeDigits(interval.high)}), so that nothing can be said about its use.`,
  'confounded-structural': ({ structureMatched, decodability }) =>
    `The direction tells the classes apart (AUROC ${toThreeDigits(decodability.auroc)}), but not on the structure-matched set (${toThreeDigits(structureMatched?.auroc ?? missing('AUROC of the structure-matched set'))}): it may read the wording and not the concept.`,
  'behaviour-not-expressed': ({ behaviour: { gap, interval }, target }) =>
    `The model does not answer the ${target.others ? '' : 'two '}classes differently for certain (gap ${toThreeDigits(gap)} logits, 95 % interval ${toThreeDigits(interval.low)} to ${toThreeDigits(interval.high)}), so that there is no behaviour for the direction to cause.`,
  'site-locked': ({ interchange: { full } }) =>
    `The direction can be read here, but the behaviour does not pass through this site: swapping the whole activation moves ${effectShare(typeof full === 'number' ? full : full.value)} of it.`,
  'sufficient-and-necessary': ({ steering, interchange, ablation }) =>
    `The model uses this direction: steering along it gives ${effectShare(steering.value)} of the natural effect, swapping its component alone ${effectShare(interchange.value)}, and without it ${effectShare(ablation.value)} of the behaviour is lost.`,
  'partial-mediator': ({ steering, interchange, ablation }) =>
    `The direction carries a part of the behaviour: S = ${effectShare(steering.value)}, I = ${effectShare(interchange.value)}, N = ${effectShare(ablation.value)}.`,
  'redundant-pathway': ({ interchange, ablation }) =>
    `Swapping the direction moves the behaviour (I = ${effectShare(interchange.value)}), but the model does as well without it (N = ${effectShare(ablation.value)}): another pathway carries the same.`,
  unnamed: () =>
    'The direction meets every condition for being causal but one: a name was required and none was given.',
  'uniform-rescale': ({ sweep }) =>
    `The direction is not used for this contrast: what large doses of it do to the logits is to scale all of them (one factor explains ${toThreeDigits(sweep.commonScale)} of the change).`,
  'direction-inert': ({ sweep }) =>
    `The direction is carried along and does nothing: twice the activation's length of it changes logits by ${toThreeDigits(100 * sweep.change)} % at most.`,
  'effect-not-specific': ({ steering, interchange, sweep }) =>
    `Large doses change what the model says (by ${toThreeDigits(sweep.change)} of its logits), but not this contrast: S = ${effectShare(steering.value)}, I = ${effectShare(interchange.value)}.`,
};

/** The target words of all classes, as they stand in a sentence. */
export function choiceBetween({ positive, negative, others }: CommonEvidence['target']): string {
  const named = (tokens: readonly { text: string }[]) => tokens.map(({ text }) => JSON.stringify(text)).join(', ');
  if (!others) return `${named(positive)} and ${named(negative)}`;
  const words = [negative, positive, ...others].map(named);
  return `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`;
}

export function limitsOf(
  verdict: VerdictName,
  { site, split, target, data, structureMatched }: CommonEvidence,
): string[] {
  return [
    `It is about layer ${site.layer} (${site.head === undefined ? site.place : `${site.place} of head ${site.head}`}) at position ${site.position}, and about the choice between ${choiceBetween(target)} after prompts like the ${split.test.length} tested ones.`,
    ...(verdict === 'undetermined' ? ['That an effect was not found is no proof that there is none.'] : []),
    ...(verdict.startsWith('epiphenomenal')
      ? ['The direction may be read for another choice than this one: only this contrast was tested.']
      : []),
    ...(target.chosen === 'discovery'
      ? ['The target tokens were chosen from the discovery half, not by hypothesis.']
      : []),
    ...(data.pairs === 0
      ? [
          'The rows are not in counterfactual pairs: rows of one class may differ from the other in more than the label.',
        ]
      : []),
    ...(structureMatched
      ? []
      : ['No structure-matched set was given: that the direction reads wording and not the concept is not excluded.']),
  ];
}
