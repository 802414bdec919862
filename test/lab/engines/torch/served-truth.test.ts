/** A hand-built model whose causal structure is known, served elsewhere: the verdicts that are true of it, with the embedded engine's statistics. */

import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { DatasetRow } from '../../../../src/lab/causality/evidence.ts';
import { disagreements } from '../../../../src/lab/ground-truth/agreement.ts';
import { type CaseName, makeToyQuestion, type ToyQuestion } from '../../../../src/lab/ground-truth/toy-questions.ts';
import { captureOf } from './demo-experiments.ts';
import { type Elsewhere, useServed } from './served-lab.ts';

const SEED = 2001;
/** These are asked of one and the same model. */
const CASES: CaseName[] = ['causal', 'correlate', 'noise', 'confounded'];
const HERE = 'here';
/** What differs where activations differ in their last bits, where things are kept, and which engine it was. */
const IGNORED = /\.(hash|manifest_sha256|record_file)$|^\.record\.evidence\.model\.engine$/;

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'cuvette-')));
const questions = new Map(CASES.map((name) => [name, makeToyQuestion(folder, name, SEED)]));
const served = useServed();
let agent: Elsewhere;
beforeAll(async () => {
  agent = await served.attach(await served.serve(folder));
  await agent.ask('colab_attach', { endpoint: folder, session_name: HERE });
}, 280_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test.each(CASES)('%s', async (name) => {
  const question = questions.get(name);
  if (!question) throw new Error(`There is no question ${name}.`);
  const theirs = await askTool(name, question, { session_name: HERE });
  const ours = await askTool(name, question);
  expect(ours).toMatchObject({ verdict: question.verdict, reason: question.reason });
  expect(disagreements(ours, theirs, { ignored: [IGNORED] })).toEqual([]);
});

/** The question with an agent's tools: its data captured, its direction given to the lab or found there. */
async function askTool(name: string, { question }: ToyQuestion, session: { session_name?: string } = {}) {
  const { site, direction, dataset, structureMatched, target, neutralPrompts, seed } = question;
  const capture = (rows: readonly DatasetRow[]) => captureOf(agent, rows, { layers: [site.layer], ...session });
  if (direction.kind === 'given') {
    const probe = {
      probe_id: name,
      direction: Array.from(direction.vector),
      layer: site.layer,
      position: site.position,
    };
    await agent.ask('load_probe', { ...probe, ...session });
  }
  return agent.ask('causality_protocol', {
    ...(direction.kind === 'given' ? { probe_id: name } : { fit: direction.method }),
    capture_id: await capture(dataset),
    ...(structureMatched && { structure_matched_capture_id: await capture(structureMatched) }),
    positive_tokens: target?.positive,
    negative_tokens: target?.negative,
    neutral_prompts: neutralPrompts,
    include_evidence: true,
    seed,
    ...session,
  });
}
