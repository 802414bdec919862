import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { openSafetensors } from '../../../src/lab/formats/safetensors.ts';
import { temporaryFolder } from '../../temporary-folder.ts';
import { createToyEngine } from '../toy-engine.ts';
import { toyLab } from '../toy-lab.ts';

describe('capturing activations', () => {
  test('of one prompt gives the documented answer', async () => {
    const { call } = toyLab();
    const answer = await call('capture_acts', { prompt: 'the red cats', layers: [0, 1] });
    expect(answer).toMatchObject({
      capture_id: expect.stringMatching(/^cap_[0-9a-f]{16}$/),
      layers: [0, 1],
      positions: ['end_question'],
      position_indices: [2],
      n_input_tokens: 3,
      d_model: 16,
      n_prompts: 1,
      manifest_sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
  });

  test('stores what the engine gave, in a file that other programs can read', async () => {
    const { call, engine, folder } = toyLab();
    const prompts = ['the red cats', 'the old dog near the house'];
    const { capture_id } = await call('capture_acts', {
      prompts,
      layers: [0, 'blocks.1.hook_mlp_out'],
      positions: [-1, 'first_token'],
    });
    const captures = join(folder, 'lab', readdirSync(join(folder, 'lab'))[0] ?? '', 'captures');
    const file = openSafetensors(join(captures, String(capture_id), 'activations.safetensors'));
    const tokens = await engine.tokenize(prompts);
    const results = await engine.run({
      prompts: tokens,
      taps: [
        { point: { layer: 0, place: 'resid_post' }, positions: [-1, 0] },
        { point: { layer: 1, place: 'mlp_out' }, positions: [-1, 0] },
      ],
    });
    expect([...file.tensors.keys()]).toEqual([
      'blocks.0.hook_resid_post@-1',
      'blocks.0.hook_resid_post@0',
      'blocks.1.hook_mlp_out@-1',
      'blocks.1.hook_mlp_out@0',
    ]);
    expect([...file.float32('blocks.1.hook_mlp_out@-1')]).toEqual(
      results.flatMap(({ activations }) => [...(activations[1]?.subarray(0, 16) ?? [])]),
    );
    expect([...file.float32('blocks.0.hook_resid_post@0')]).toEqual(
      results.flatMap(({ activations }) => [...(activations[0]?.subarray(16) ?? [])]),
    );
    file.close();
  });

  test('of many prompts is done in batches, with progress', async () => {
    const { call, engine, told } = toyLab();
    const prompts = Array.from({ length: 2000 }, (_, i) => `the red cats near the ${i % 2 ? 'house' : 'road'}`);
    const answer = await call('capture_acts', { prompts, layers: [1] });
    expect(answer).toMatchObject({ n_prompts: 2000, n_input_tokens: 12_000 });
    expect(engine.requests.length).toBeGreaterThan(2);
    for (const { prompts: some } of engine.requests) expect(some.flat().length).toBeLessThanOrEqual(4096);
    expect(told.at(0)).toMatch(/^Captured \d+ of 2000 prompts$/);
  });

  test('stops when it is aborted, and leaves nothing behind', async () => {
    const engine = createToyEngine();
    const { call, folder } = toyLab(temporaryFolder(), engine);
    const stop = new AbortController();
    const run = engine.run;
    engine.run = async (request, signal) => {
      const results = await run(request, signal);
      if (engine.requests.length === 2) stop.abort();
      return results;
    };
    const prompts = Array.from({ length: 4000 }, () => 'the red cats near the house');
    await expect(call('capture_acts', { prompts, layers: [1] }, stop.signal)).rejects.toThrow(/abort/i);
    expect(engine.requests).toHaveLength(2);
    const [store = ''] = readdirSync(join(folder, 'lab'));
    expect(readdirSync(join(folder, 'lab', store, 'captures'))).toEqual([]);
  });

  test('gives the same id and hash for the same experiment, and others for another', async () => {
    const { call } = toyLab();
    const asked = { prompts: ['the red cats', 'the old dog'], layers: [0], labels: [1, 0] };
    const first = await call('capture_acts', asked);
    const again = await toyLab().call('capture_acts', asked);
    expect(again).toEqual(first);
    const others = [
      { ...asked, labels: [0, 1] },
      { ...asked, layers: [1] },
      { ...asked, prompts: ['the red cats', 'the old dogs'] },
    ];
    for (const other of others)
      expect((await call('capture_acts', other)).manifest_sha256).not.toBe(first.manifest_sha256);
  });

  test('stores labels, pairs and templates with the prompts', async () => {
    const { call, folder } = toyLab();
    const asked = {
      prompts: ['the cats', 'the cat'],
      labels: [1, 0],
      pair_ids: [7, 7],
      template_ids: ['t', 't'],
      layers: [0],
    };
    const { capture_id } = await call('capture_acts', asked);
    const [store = ''] = readdirSync(join(folder, 'lab'));
    const path = join(folder, 'lab', store, 'captures', String(capture_id), 'capture.json');
    expect(existsSync(path)).toBe(true);
    expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({
      prompts: asked.prompts,
      labels: [1, 0],
      pairs: ['7', '7'],
      templates: ['t', 't'],
      tokenCounts: [2, 2],
    });
  });
});

test('activations that are not finite are an error, and are not stored', async () => {
  const engine = createToyEngine();
  const { call } = toyLab(temporaryFolder(), engine);
  const run = engine.run;
  engine.run = async (request, signal) => {
    const results = await run(request, signal);
    results[0]?.activations[0]?.fill(Number.NaN);
    return results;
  };
  await expect(call('capture_acts', { prompt: 'the cat', layers: [0] })).rejects.toMatchObject({ code: 'bad_model' });
  expect(await call('colab_status')).toMatchObject({ captures_in_memory: 0 });
});

describe('capture_acts refuses a request', () => {
  const capture = (args: Record<string, unknown>) => toyLab().call('capture_acts', args);

  test.each([
    ['no prompt', { layers: [0] }, /no prompt. Give prompt/],
    ['both kinds of prompts', { prompt: 'the', prompts: ['the'], layers: [0] }, /both prompt and prompts/],
    ['a layer out of range', { prompt: 'the', layers: [2] }, /no layer 2\. The model has layers 0 to 1/],
    ['an unknown place', { prompt: 'the', layers: ['blocks.0.hook_q'] }, /no hook point/],
    [
      'a position outside the prompt',
      { prompt: 'the cat', layers: [0], positions: [-3] },
      /Position -3 is outside the prompt "the cat" of 2 tokens/,
    ],
    ['an unknown position', { prompt: 'the cat', layers: [0], positions: ['middle'] }, /no position "middle"/],
    ['labels that do not fit', { prompts: ['the', 'a'], layers: [0], labels: [1] }, /1 labels for 2 prompts/],
    ['labels that are none', { prompts: ['the', 'a'], layers: [0], labels: [1, 2] }, /No row has label 0/],
    ['labels of two kinds', { prompts: ['the', 'a'], layers: [0], labels: [1, 'fig'] }, /Some labels are numbers/],
    ['pairs that do not fit', { prompts: ['the', 'a'], layers: [0], pair_ids: ['x'] }, /1 pair_ids for 2 prompts/],
    ['an empty prompt', { prompts: ['the', ' '], layers: [0] }, /Prompt 1 has no tokens/],
    [
      'a prompt that is too long',
      { prompt: 'the '.repeat(65), layers: [0] },
      /Prompt 0 has 65 tokens, and toy takes 64/,
    ],
    ['no layers', { prompt: 'the', layers: [] }, /layers/],
  ])('with %s is refused, and said why', async (_, args, message) => {
    await expect(capture(args)).rejects.toMatchObject({
      code: 'invalid_input',
      message: expect.stringMatching(message),
    });
  });
});
