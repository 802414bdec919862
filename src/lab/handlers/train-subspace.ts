/** Trains what is more than a direction between two classes: a subspace that is fitted on interchange, or the span of several classes' means. */

import { chooseControls } from '../causality/controls.ts';
import { classesOf, labelsOf } from '../causality/dataset.ts';
import type { Labelled } from '../causality/decodability.ts';
import { prepareFits } from '../causality/discovery-fit.ts';
import { middleLogits } from '../causality/protocol.ts';
import type { CausalQuestion } from '../causality/question.ts';
import { meanLogits, type ProtocolRun, type Site } from '../causality/readings.ts';
import { chooseTarget } from '../causality/target.ts';
import { type TestedPart, testedPart } from '../causality/tested-part.ts';
import type { LabContext } from '../core/lab.ts';
import { pick } from '../core/missing.ts';
import { tokenizePrompts } from './prompts.ts';
import type { LabResources } from './resources.ts';

interface SubspaceTraining {
  wanted: CausalQuestion['direction'];
  site: Site;
  data: Labelled;
  /** Rows that it may see. */
  trained: readonly number[];
  words: Pick<CausalQuestion, 'target' | 'classes'>;
}

/** In the rows that it may see: target words that are not given are found there, too. */
export async function trainSubspace(
  resources: LabResources,
  { wanted, site, data, trained, words }: SubspaceTraining,
  { signal, progress }: LabContext,
): Promise<TestedPart> {
  const { engine } = resources;
  const { dataset, seed } = data;
  if (wanted.kind !== 'fit' || wanted.method !== 'interchange')
    return testedPart(wanted, data, { discovery: [...trained] });
  const run: ProtocolRun = { engine, signal, advance: () => {} };
  const prompts = await tokenizePrompts(
    resources,
    dataset.map(({ prompt }) => prompt),
  );
  const labels = labelsOf(dataset, trained);
  const logits = await meanLogits(run, pick(prompts, trained, 'prompt'), labels, classesOf(dataset));
  const target = await chooseTarget(engine, words, logits);
  const controls = await chooseControls(engine, {}, target, middleLogits(logits));
  const fitAt = await prepareFits(run, [wanted], { dataset, seed, prompts, discovery: trained, target, controls });
  const fitted = await fitAt(wanted, site, data);
  if (fitted) progress(`The subspace recovers ${fitted.search.recovered.toFixed(2)} of the behaviour in these rows`);
  return testedPart(wanted, data, { discovery: [...trained] }, fitted?.subspace);
}
