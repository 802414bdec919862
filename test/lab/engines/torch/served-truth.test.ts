/** The ground-truth suite, served elsewhere: the verdicts that are true of its models, with the embedded engine's statistics. */

import { expect, test } from 'vitest';
import { askQuestion, type Outcome } from '../../../../src/lab/experiments.ts';
import { disagreements } from '../../../../src/lab/ground-truth/agreement.ts';
import { type AnswerIn, type GroundTruthRun, runGroundTruth } from '../../../../src/lab/ground-truth/suite.ts';
import { CASE_NAMES } from '../../../../src/lab/ground-truth/toy-questions.ts';
import { packageFile } from '../../../../src/package-root.ts';
import { kill } from '../../../e2e/harness.ts';
import { useServed } from './served-lab.ts';

const SEED = 2001;
const HERE = 'here';
/** What differs where activations differ in their last bits, and which engine it was. */
const IGNORED = [/\.hash$/, /^\.evidence\.model\.engine$/];

const served = useServed();

/** Serves the model, and has an agent ask both the lab elsewhere and the embedded engine of its own server. */
const answer: AnswerIn = async (folder, question) => {
  const lab = await served.serve({ model: folder });
  const agent = await served.attach(lab);
  await agent.ask('colab_attach', { endpoint: folder, session_name: HERE });
  const theirs = await askQuestion(agent.askedAt(HERE), question);
  const ours = await askQuestion(agent.ask, question);
  expect(ours.record.evidence.model.engine).toBe('torch');
  expect(theirs.record.evidence.model.engine).toBe('embedded');
  expect(disagreements(found(ours), found(theirs), { ignored: IGNORED, byDigits: true })).toEqual([]);
  await agent.close();
  kill(lab.pid, 'SIGTERM');
  await lab.done;
  return ours.record;
};

/** All but the sentences, which are made of rounded numbers. */
function found({ record: { evidence, verdict } }: Outcome) {
  return { evidence, verdict: verdict.verdict, reason: verdict.reason };
}

/** Both engines agree on all of them (agreement.test.ts); that none is changed by being served is asked of all on CI. */
const SERVED = process.env.CI ? CASE_NAMES : CASE_NAMES.slice(0, 3);

test.each(SERVED)('%s', async (name) => {
  const [run] = await runsOf({ cases: [name] });
  expect(run).toMatchObject({ case: name, correct: true, rightReason: true });
});

test("the shipped model's random-weights twin", async () => {
  const [run] = await runsOf({ cases: [], twinOf: packageFile('models', 'demo') });
  expect(run).toMatchObject({ case: 'twin', correct: true });
});

async function runsOf(options: { cases: typeof CASE_NAMES; twinOf?: string }): Promise<GroundTruthRun[]> {
  const runs: GroundTruthRun[] = [];
  await runGroundTruth({ ...options, seeds: [SEED], answer, onRun: (run) => runs.push(run) });
  return runs;
}
