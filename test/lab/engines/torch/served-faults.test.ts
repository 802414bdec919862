/** Tests failures of a remote lab: what the agent is told, what is kept, and that the next call works. */

import { beforeAll, describe, expect, test } from 'vitest';
import { askDemoQuestion, captureRows } from '../../../../src/lab/demo/experiments.ts';
import { demoQuestions } from '../../../../src/lab/demo/questions.ts';
import { kill } from '../../../e2e/harness.ts';
import { type RemoteAgent, type ServedLab, useServed } from './served-lab.ts';

const [question] = demoQuestions(0);
const rows = question?.dataset ?? [];
const layer = question?.layer ?? 0;
const target = { positive_tokens: question?.target.positive, negative_tokens: question?.target.negative };

const served = useServed();
let lab: ServedLab;
let agent: RemoteAgent;
beforeAll(async () => {
  ({ lab, agent } = await served.serveAndAttach());
});

test.each([
  ['no token', undefined],
  ['a wrong token', 'x'.repeat(43)],
])('attaching a lab with %s is refused, and nothing of it is stored', async (_, token) => {
  const stranger = await served.agent();
  const said = await stranger.refused('colab_attach', { endpoint: lab.url, token, session_name: 'mine' });
  expect(said).toMatch(/wants its token.*Call colab_attach with endpoint and token/);
  expect(await stranger.refused('colab_status', { session_name: 'mine' })).toContain('no lab session mine');
  await stranger.close();
});

test('a Python that is killed during the protocol is reported, keeps what was acknowledged, and the protocol asked again works', async () => {
  const capture_id = await captureRows(agent.ask, rows, { layers: [layer] });
  await agent.ask('train_probe', { probe_id: 'kept', capture_id, layer, method: 'difference-of-means' });
  const before = await keptBy(agent);
  const pid = Number((await agent.beside('import os; os.getpid()')).structured.output);

  const asked = { fit: 'difference-of-means', capture_id, ...target };
  let progress = 0;
  const options = {
    timeout: 200_000,
    onprogress: () => {
      progress += 1;
      if (progress === 2) kill(pid);
    },
  };
  const lost = await agent.call('causality_protocol', asked, options);
  expect(lost.isError, lost.text).toBe(true);
  expect(lost.text).toMatch(/ended \(SIGKILL\).*Ask again.*Captures, probes and records are on disk/);
  expect(await keptBy(agent)).toEqual(before);
  // A question without an answer does not count.
  expect(await agent.ask('causality_protocol', asked)).toMatchObject({ verdict: 'causal', family: 1 });
  const loaded = await agent.ask('probe_eval', { probe_id: 'kept', capture_id });
  expect(loaded.n_samples).toBe(rows.length);
});

/** What the lab has acknowledged. */
async function keptBy({ ask }: RemoteAgent) {
  const { captures_in_memory, family } = await ask('colab_status');
  const { probes } = await ask('list_probes');
  const { manifests } = await ask('list_manifests');
  return { captures_in_memory, family, probes, manifests };
}

test('a device without memory for one prompt is reported, and the next call works', async () => {
  const ask = () =>
    agent.call('capture_acts', { prompts: [`${rows[0]?.prompt}`, `${rows[1]?.prompt}`], layers: [layer] });
  const before = await ask();
  await agent.beside(`import torch
kept = torch.nn.functional.embedding
def embedding(*args, **kwargs):
    raise torch.OutOfMemoryError("CUDA out of memory")
torch.nn.functional.embedding = embedding`);
  const refused = await ask();
  expect(refused.isError).toBe(true);
  expect(refused.text).toMatch(/The memory of cpu is not enough for the prompts, even for one at a time/);
  await agent.beside('torch.nn.functional.embedding = kept');
  expect((await ask()).structured.manifest_sha256).toBe(before.structured.manifest_sha256);
});

describe('two agents that use a lab at once', () => {
  test('get the same answers as alone', async () => {
    const other = await served.attach(lab);
    const capture_id = await captureRows(agent.ask, rows, { layers: [layer] });
    const steer = { prompts: rows.slice(0, 4).map(({ prompt }) => prompt), layer, alpha: 2, alpha_unit: 'norm' };
    await agent.ask('train_probe', { probe_id: 'one', capture_id, layer, method: 'difference-of-means' });
    const ofOne = () => agent.ask('steer', { ...steer, direction_id: 'one', max_new_tokens: 4 });
    const ofOther = () => other.ask('steer', { ...steer, direction_id: 'one', alpha: -2, max_new_tokens: 4 });
    const [alone, otherAlone] = [await ofOne(), await ofOther()];
    expect(alone.mean_delta_rel).not.toBeCloseTo(Number(otherAlone.mean_delta_rel), 2);
    const rounds = Array.from({ length: 5 }, () => [
      ofOne(),
      ofOther(),
      other.ask('probe_eval', { probe_id: 'one', capture_id }),
    ]);
    for (const round of rounds) {
      const [one, another, evaluated] = await Promise.all(round);
      expect(one).toEqual(alone);
      expect(another).toEqual(otherAlone);
      expect(evaluated).toMatchObject({ n_samples: rows.length });
    }
    await other.close();
  });

  test('get the same verdicts as alone', async () => {
    const other = await served.attach(lab);
    const [number, feeling] = demoQuestions(0);
    if (!number || !feeling) throw new Error('The demo has too few questions.');
    const found = await Promise.all([askDemoQuestion(agent.ask, number, 0), askDemoQuestion(other.ask, feeling, 0)]);
    expect(found.map(({ answer }) => answer.verdict)).toEqual([number.expected, feeling.expected]);
    await other.close();
  });
});
