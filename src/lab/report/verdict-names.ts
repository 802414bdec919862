/** Defines the names and explanations of verdicts that the page, the figures and the terminal share. */

import type { Dose } from '../causality/common-evidence.ts';
import type { Evidence } from '../causality/evidence.ts';
import type { ProtocolRecord, VerdictName } from '../causality/verdict.ts';
import { formatHookPoint } from '../core/hook-points.ts';
import { formatNumber } from './numbers.ts';

export const VERDICT_NAMES: Record<VerdictName, string> = {
  causal: 'Causal',
  'weak-causal': 'Weakly causal',
  'epiphenomenal-softmax': 'Epiphenomenal, by the softmax',
  'epiphenomenal-template': 'Epiphenomenal, by the template',
  undetermined: 'Undetermined',
};

export const MEANINGS: Record<VerdictName, string> = {
  causal:
    'At this site the model uses what the direction carries: putting it in makes the behaviour, taking it out ends it, and what is natural along random directions does much less.',
  'weak-causal':
    'The direction moves the behaviour more than what is natural along random directions does, but it is not the whole of what the model uses, or not in the way it uses it by itself.',
  'epiphenomenal-softmax':
    'The information can be read from the direction, but it is not used for this contrast: moving along it changes the scale of all logits together, not the choice that it is said to be about.',
  'epiphenomenal-template':
    'The information can be read from the direction, but nothing after this site uses it for this contrast: the behaviour comes by another way.',
  undetermined: 'The run does not allow a verdict on causality, for the reason given.',
};

export type Tone = 'good' | 'mixed' | 'bad' | 'plain';

export function toneOf(verdict: VerdictName): Tone {
  if (verdict === 'causal') return 'good';
  if (verdict === 'weak-causal') return 'mixed';
  return verdict === 'undetermined' ? 'plain' : 'bad';
}

/** What the run was about: the feature's name if it has one, and where it was looked for. */
export function titleOf({ evidence }: ProtocolRecord): string {
  const name = evidence.naming.name ?? evidence.direction.source ?? 'A direction';
  return `${name} (${formatSite(evidence)})`;
}

export function formatSite({ site }: Evidence): string {
  return `${formatHookPoint(site)}, ${positionOf(site.position)}`;
}

export function formatDose({ absolute, swing, norm }: Dose): string {
  return `${formatNumber(absolute)} (${formatNumber(swing)} of the class swing, ${formatNumber(norm)} of the activation's length)`;
}

function positionOf(position: number): string {
  if (position === -1) return 'last token';
  if (position < 0) return `token ${-position} from the end`;
  return position === 0 ? 'first token' : `token ${position + 1}`;
}
