/** Tests that a served torch lab gives the same verdicts and statistics as the embedded engine on models of known structure. */

import { expect, test } from 'vitest';
import { askQuestion, type ExperimentResult } from '../../../../src/lab/demo/experiments.ts';
import { packageFile } from '../../../../src/package-root.ts';
import { kill } from '../../../e2e/harness.ts';
import { allOnCi } from '../../../sample.ts';
import { disagreements } from '../../ground-truth/agreement.ts';
import { FIRST_FAMILIES } from '../../ground-truth/families/first.ts';
import { twinFamily } from '../../ground-truth/families/twins.ts';
import { type AnswerIn, runFamily } from '../../ground-truth/suite.ts';
import { falsePositives } from '../../ground-truth/tally.ts';
import { useServed } from './served-lab.ts';

const SEED = 2001;
const HERE = 'here';
/** What differs where activations differ in their last bits, and which engine it was. */
const IGNORED = [/\.hash$/, /^\.evidence\.model\.engine$/];

const served = useServed();

/** Serves the model, and has an agent ask both the lab elsewhere and the embedded engine of its own server. */
const answer: AnswerIn = async (folder, question) => {
  const { lab, agent } = await served.serveAndAttach({ model: folder });
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
function found({ record: { evidence, verdict } }: ExperimentResult) {
  return { evidence, verdict: verdict.verdict, reason: verdict.reason };
}

test.each(allOnCi(FIRST_FAMILIES, 2))(
  'the torch engine behind HTTP gives the same verdict as the embedded one on $name',
  async (family) => {
    const run = await runFamily(family, SEED, answer);
    expect(run).toMatchObject({ family: family.name, outcome: 'right', rightReason: true });
  },
);

test("the torch engine behind HTTP gives the same verdict as the embedded one on the shipped model's random-weights twin", async () => {
  const run = await runFamily(twinFamily(packageFile('models', 'demo')), SEED, answer);
  expect(falsePositives([run]).count).toBe(0);
});
