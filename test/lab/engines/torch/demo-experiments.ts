/** Experiments on the model that ships, as an agent makes them with its tools. */

import type { DatasetRow } from '../../../../src/lab/causality/evidence.ts';
import type { DemoQuestion } from '../../../../src/lab/demo/questions.ts';
import type { Answer } from '../../../e2e/harness.ts';
import type { Elsewhere } from './served-lab.ts';

type Ask = Pick<Elsewhere, 'ask'>;

/** The id of a capture of these rows. */
export async function captureOf(
  { ask }: Ask,
  rows: readonly DatasetRow[],
  args: Record<string, unknown>,
): Promise<unknown> {
  const answer = await ask('capture_acts', {
    prompts: rows.map(({ prompt }) => prompt),
    labels: rows.map(({ label }) => label),
    pair_ids: rows.map(({ pair }) => pair),
    ...args,
  });
  return answer.capture_id;
}

/** The calls of `cuvette lab demo` for one of its questions, one by one: capture, train, capture, ask. */
export async function askAsTheDemo(
  agent: Ask,
  { name, title, layer, position, training, dataset, structureMatched, target }: DemoQuestion,
  session: { session_name?: string } = {},
): Promise<Answer['structured']> {
  const capture = (rows: readonly DatasetRow[]) =>
    captureOf(agent, rows, { layers: [layer], positions: [position], ...session });
  const capture_id = await capture(training);
  const trained = { probe_id: name, capture_id, layer, position, method: 'difference-of-means', held_out: 0, seed: 0 };
  await agent.ask('train_probe', { ...trained, ...session });
  return agent.ask('causality_protocol', {
    probe_id: name,
    capture_id: await capture(dataset),
    ...(structureMatched && { structure_matched_capture_id: await capture(structureMatched) }),
    positive_tokens: target.positive,
    negative_tokens: target.negative,
    feature_name: title,
    include_evidence: true,
    seed: 0,
    ...session,
  });
}
