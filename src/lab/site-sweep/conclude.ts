/** Answers a sweep from its evidence: the state of each cell, the best sites, and whether the effect is present anywhere on the map. A pure function. */

import { isExpressed } from '../causality/conditions.ts';
import { type EffectState, isBeyond, isEquivalent, stateOf } from '../causality/effect-states.ts';
import { UNTOLD } from '../causality/thresholds.ts';
import { effectShare, toThreeDigits } from '../causality/verdict-text.ts';
import { formatHookPoint } from '../core/hook-points.ts';
import { missing } from '../core/missing.ts';
import type { SweepCell, SweepConclusion, SweepEvidence } from './sweep-record.ts';

const BEST = 5;
/** The tail of what random directions do is not known so far out that a smaller p could be told. */
const TINIEST = 0.0001;

export function concludeSweep(evidence: SweepEvidence): SweepConclusion {
  const { cells, behaviour } = evidence;
  const states = cells.map((cell) => cellState(cell, evidence));
  const sizeOf = (index: number) => Math.abs((cells[index] ?? missing('cell', index)).component.value);
  const inState = (state: EffectState) =>
    cells.flatMap((_, index) => (states[index] === state ? [index] : [])).sort((a, b) => sizeOf(b) - sizeOf(a));
  const present = inState('present');
  const best = [...present, ...inState('unknown')].slice(0, BEST);
  const adjusted = Math.min(1, ...cells.flatMap(({ test }) => (test ? [test.adjusted] : [])));
  const [first] = present;
  if (first !== undefined) {
    const top = cells[first] ?? missing('cell', first);
    const sentence =
      `Swapping the component moves the behaviour at ${present.length} of ${cells.length} sites, most at ${siteName(top)}: ` +
      `${effectShare(top.component.value)} of it [${effectShare(top.component.interval.low)}, ${effectShare(top.component.interval.high)}], adjusted p ${adjusted < TINIEST ? `below ${TINIEST}` : toThreeDigits(adjusted)} for the whole map. ` +
      'This is a screen: causality_protocol at a site gives the verdict.';
    return { state: 'present', adjusted, sentence, best };
  }
  if (!isExpressed(behaviour)) {
    const { low, high } = behaviour.interval;
    const sentence = `The model does not treat the classes differently enough to ask what causes it: the natural gap is ${toThreeDigits(behaviour.gap)} logits [${toThreeDigits(low)}, ${toThreeDigits(high)}].`;
    return { state: 'unknown', adjusted, sentence, best };
  }
  const open = states.filter((state) => state === 'unknown').length;
  if (open === 0) {
    const sentence = `Swapping the component moves the behaviour at none of the ${cells.length} sites: at each, an effect of a tenth of it is excluded.`;
    return { state: 'absent', adjusted, sentence, best };
  }
  const sentence = `No effect is shown at any of the ${cells.length} sites; at ${open} of them it is not excluded either. More pairs of prompts would tell.`;
  return { state: 'unknown', adjusted, sentence, best };
}

/**
 * As the protocol has it. Where nothing passes through a site the component has no effect, unless its own interval says otherwise, which is left
 * unknown: nothing was tested there.
 */
export function cellState(
  { whole, component, test }: SweepCell,
  { behaviour }: Pick<SweepEvidence, 'behaviour'>,
): EffectState {
  if (!isExpressed(behaviour) || Math.max(component.untold, test?.untold ?? component.untold) > UNTOLD)
    return 'unknown';
  if (test) return stateOf({ interval: component.interval, ...test });
  return isEquivalent(whole.interval) && isEquivalent(component.interval) ? 'absent' : 'unknown';
}

/** Of the whole activation, which is compared with no random directions: present means that its interval is beyond the least effect. */
export function wholeState({ whole }: SweepCell): EffectState {
  if (isBeyond(whole.interval)) return 'present';
  return isEquivalent(whole.interval) ? 'absent' : 'unknown';
}

function siteName({ site, direction }: SweepCell): string {
  return `${formatHookPoint(site)}, position ${site.position} (${direction})`;
}
