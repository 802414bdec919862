/** Lets an agent look inside the model that ships, over stdio, from attach to verdict. */

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type DemoQuestion, demoQuestions } from '../../../src/lab/demo/questions.ts';
import { type Agent, startAgent, useHome } from '../harness.ts';
import { PATIENCE } from './patience.ts';

const home = useHome({ preload: 'none' });
const [question] = demoQuestions(0);
/** The autoencoder that ships is of the residual stream after this block. */
const SAE_LAYER = 2;

/** A file of prompts, as an agent would write it. */
function writeRows(folder: string, name: string, rows: DemoQuestion['dataset'] = []): string {
  const lines = rows.map(({ prompt, label, pair }) => JSON.stringify({ prompt, label, pair_id: pair }));
  writeFileSync(join(folder, name), `${lines.join('\n')}\n`);
  return name;
}

async function capture(agent: Agent, folder: string, name: string, rows?: DemoQuestion['dataset']): Promise<unknown> {
  const prompts_file = writeRows(folder, name, rows);
  const layers = [question?.layer, SAE_LAYER];
  const { structured, isError, text } = await agent.call('capture_acts', { prompts_file, layers });
  expect(isError, text).toBe(false);
  return structured.capture_id;
}

test(
  'an agent gets from attach to a causal verdict with a report',
  async () => {
    const cwd = home.project();
    const agent = await startAgent({ home, cwd });
    const attached = await agent.call('colab_attach', { endpoint: 'demo' });
    expect(attached.structured).toMatchObject({
      ok: true,
      health: { model_id: 'demo', device: 'cpu', dtype: 'float32' },
    });

    const capture_id = await capture(agent, cwd, 'train.jsonl', question?.training);
    const train = { probe_id: 'number', capture_id, layer: question?.layer, method: 'difference-of-means' };
    const trained = await agent.call('train_probe', train);
    expect(Number(trained.structured.auroc)).toBeGreaterThan(0.9);
    const evaluated = await agent.call('probe_eval', { probe_id: 'number', capture_id });
    expect(evaluated.structured).toMatchObject({ evaluated_rows: 'held-out', random_directions: { n: 199 } });

    const prompts = question?.dataset.slice(0, 8).map(({ prompt }) => prompt);
    const steered = await agent.call('steer', {
      prompts,
      layer: question?.layer,
      direction_id: 'number',
      alpha: 1,
      alpha_unit: 'swing',
      max_new_tokens: 4,
    });
    expect(steered.structured).toMatchObject({
      n_prompts: 8,
      random_directions: { n: 39 },
      alpha: { swing: expect.closeTo(1, 3) },
    });
    const looked = await agent.call('sae_lookup', { sae_id: 'demo', capture_id, layer: SAE_LAYER });
    expect(looked.structured.fit_check, looked.text).toMatchObject({ fvu: expect.any(Number) });
    expect(Number((looked.structured.fit_check as { fvu: number }).fvu)).toBeLessThan(0.2);

    const asked = {
      probe_id: 'number',
      capture_id: await capture(agent, cwd, 'test.jsonl', question?.dataset),
      positive_tokens: question?.target.positive,
      negative_tokens: question?.target.negative,
      feature_name: 'number of the subject',
      report: 'report.html',
    };
    const verdict = await agent.call('causality_protocol', asked);
    expect(verdict.structured, verdict.text).toMatchObject({
      verdict: 'causal',
      family: 1,
      report_file: join(cwd, 'report.html'),
    });
    expect(readFileSync(join(cwd, 'report.html'), 'utf8')).toContain(String(verdict.structured.manifest_sha256));
    const { structured: listed } = await agent.call('list_manifests', { limit: 1 });
    expect(listed.manifests).toMatchObject([
      { tool: 'causality_protocol', manifest_sha256: verdict.structured.manifest_sha256 },
    ]);
    await agent.close();

    // Another process finds all of it again, and the same experiment has the same hash.
    const next = await startAgent({ home, cwd, args: ['--tools', 'all'] });
    expect((await next.call('list_probes')).structured).toMatchObject({ probes: [{ id: 'number' }] });
    const again = await next.call('causality_protocol', { ...asked, report: false });
    expect(again.structured.manifest_sha256, again.text).toBe(verdict.structured.manifest_sha256);
    await next.close();
  },
  PATIENCE,
);

describe('an agent that attaches nothing', () => {
  test('works on the model that ships, and the answer says so', async () => {
    const agent = await startAgent({ home, cwd: home.project(), env: { XDG_DATA_HOME: join(home.root, 'other') } });
    const { structured } = await agent.call('colab_status');
    expect(structured).toMatchObject({ model_id: 'demo', lab_note: expect.stringContaining('No lab was attached') });
    await agent.close();
  });
});

describe('attaching', () => {
  test.each([
    ['a folder that does not exist', { endpoint: './none' }, /no folder/],
    ['a name that no model has', { endpoint: 'no model at all' }, /Give demo, a folder/],
    ['a lab that does not answer', { endpoint: 'http://127.0.0.1:9', token: 'x' }, /cuvette lab serve/],
  ])('%s is an error that says what to do', async (_, args, message) => {
    const agent = await startAgent({ home, cwd: home.project() });
    const answer = await agent.call('colab_attach', { session_name: 'mine', ...args });
    expect(answer.isError).toBe(true);
    expect(answer.text).toMatch(message);
    expect((await agent.call('colab_status', { session_name: 'mine' })).text).toContain('no lab session mine');
    await agent.close();
  });
});

test('a call to the lab that is cancelled ends and leaves no half capture', async () => {
  const cwd = home.project();
  const agent = await startAgent({ home, cwd });
  const data = join(home.data, 'lab');
  await agent.call('colab_status');
  const prompts = Array.from(
    { length: 20_000 },
    (_, i) => `report: The old key near the ${i % 2 ? 'tables' : 'table'}`,
  );
  const stop = new AbortController();
  const call = agent.call(
    'capture_acts',
    { prompts, layers: [0, 1, 2] },
    { signal: stop.signal, onprogress: () => stop.abort() },
  );
  await expect(call).rejects.toThrow();
  expect((await agent.call('colab_status')).structured).toMatchObject({ ok: true });
  expect(existsSync(data)).toBe(true);
  await agent.close();
});
