/** Asks one question of a trained model after each of its blocks, in either order, and tells whether the verdicts make sense together. */

import type { CausalQuestion } from '../../../src/lab/causality/question.ts';
import type { Verdict } from '../../../src/lab/causality/verdict.ts';
import { missing } from '../../../src/lab/core/missing.ts';

/** Asks a question as the nth of a session. */
export type AskNth = (question: CausalQuestion, nth: number) => Promise<Pick<Verdict, 'verdict' | 'reason'>>;

export interface LayerStory {
  /** By layer, as asked from the first to the last, and from the last to the first. */
  upward: string[];
  downward: string[];
  /** What contradicts itself; empty if nothing does. */
  contradictions: string[];
}

export async function tellLayerStory(question: CausalQuestion, layers: number, ask: AskNth): Promise<LayerStory> {
  const order = Array.from({ length: layers }, (_, layer) => layer);
  const [upward, downward] = [await askInOrder(order), await askInOrder(order.toReversed())];
  return {
    upward,
    downward,
    contradictions: [
      ...order.flatMap((layer) =>
        upward[layer] === downward[layer] || !isClear(upward[layer]) || !isClear(downward[layer])
          ? []
          : [`layer ${layer}: ${upward[layer]}, and ${downward[layer]} in the other order`],
      ),
      ...closedSites(upward, question.site.position),
    ],
  };

  async function askInOrder(layersAsked: readonly number[]): Promise<string[]> {
    const found = new Map<number, string>();
    for (const [asked, layer] of layersAsked.entries()) {
      const { verdict, reason } = await ask({ ...question, site: { ...question.site, layer } }, asked + 1);
      found.set(layer, `${verdict}: ${reason}`);
    }
    return order.map((layer) => found.get(layer) ?? missing('verdict of layer', layer));
  }
}

/** What a later question has too little of the error rate left for is not decided, and contradicts nothing. */
function isClear(verdict: string | undefined): boolean {
  return verdict !== 'undetermined: underpowered';
}

/** At the last token, what has arrived stays in the residual stream: no later site is locked. */
function closedSites(verdicts: readonly string[], position: number): string[] {
  if (position !== -1) return [];
  const open = verdicts.findIndex((one) => one.startsWith('causal') || one.startsWith('weak-causal'));
  return verdicts.flatMap((one, layer) =>
    open >= 0 && layer > open && one.endsWith('site-locked')
      ? [`layer ${layer} is site-locked after layer ${open}: ${verdicts[open]}`]
      : [],
  );
}
