import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { decide } from '../../../src/lab/causality/decide.ts';
import { protocolRecordSchema } from '../../../src/lab/causality/verdict.ts';
import { temporaryFolder } from '../../temporary-folder.ts';
import { createToyEngine, NUMBER } from '../toy-engine.ts';
import { toyLab } from '../toy-lab.ts';

const target = { positive_tokens: ['are'], negative_tokens: ['is'] };

async function preparedLab(folder = temporaryFolder(), engine = createToyEngine()) {
  const lab = toyLab(folder, engine);
  const capture_id = await lab.capturePairs(14);
  await lab.call('load_probe', { probe_id: 'number', direction: NUMBER.map((value) => value * 2), layer: 0 });
  return { ...lab, asked: { probe_id: 'number', capture_id, ...target } };
}

describe('the answer of causality_protocol', () => {
  test('has every field that callers know', async () => {
    const { call, asked } = await preparedLab();
    const answer = await call('causality_protocol', {
      ...asked,
      alpha_sweep: [-3, 3],
      n_random_seeds: 5,
      feature_name: 'number',
    });
    expect(answer).toMatchObject({
      verdict: expect.stringMatching(
        /^(causal|weak-causal|epiphenomenal-softmax|epiphenomenal-template|undetermined)$/,
      ),
      reason: expect.any(String),
      real_auroc: 1,
      baselines: { strongest_baseline_mean: expect.any(Number) },
      auroc_gap: expect.any(Number),
      n_samples: 28,
      delta_rel_max: expect.any(Number),
      flip_rate_at_max_alpha: expect.any(Number),
      structure_matched_auroc: null,
      feature_named: true,
      checks_run: {
        random_feature_baseline: true,
        control_token_normalization: true,
        structural_rigidity_alpha_sweep: true,
      },
      manifest_sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
      family: 1,
      nulls: 99,
    });
    const results = answer.steering_results as { alpha: number; dose: { absolute: number } }[];
    // Doses are counted in lengths of the probe's direction, which is 2 here.
    for (const asked of [-3, 3]) expect(results.map(({ alpha }) => alpha)).toContainEqual(expect.closeTo(asked, 4));
    expect(answer).not.toHaveProperty('record');
  });

  test('rests on a stored record, which anyone can decide again', async () => {
    const { call, asked } = await preparedLab();
    const answer = await call('causality_protocol', { ...asked, include_evidence: true });
    const kept = protocolRecordSchema.parse(JSON.parse(readFileSync(String(answer.record_file), 'utf8')));
    expect(kept).toEqual(JSON.parse(JSON.stringify(answer.record)));
    expect(decide(kept.evidence)).toEqual(kept.verdict);
    expect(kept.verdict.verdict).toBe(answer.verdict);
  });

  test('is the same from the same question, in this lab and in another', async () => {
    const first = await preparedLab();
    const answers = [
      await first.call('causality_protocol', first.asked),
      await first.call('causality_protocol', first.asked),
    ];
    const second = await preparedLab();
    answers.push(await second.call('causality_protocol', second.asked));
    expect(new Set(answers.map(({ manifest_sha256 }) => manifest_sha256)).size).toBe(1);
  });

  test('can be on a direction that is fitted to half of the data', async () => {
    const { call, asked } = await preparedLab();
    const { probe_id: _, ...rest } = asked;
    const answer = await call('causality_protocol', { ...rest, fit: 'difference-of-means' });
    expect(answer).toMatchObject({ real_auroc: 1, n_samples: 14 });
  });

  test('leaves out rows that the probe was trained on', async () => {
    const { call, asked } = await preparedLab();
    await call('train_probe', { probe_id: 'trained', capture_id: asked.capture_id, layer: 0, held_out: 0.5 });
    const answer = await call('causality_protocol', { ...asked, probe_id: 'trained' });
    expect(answer.n_samples).toBe(14);
    expect(answer.notes).toEqual([expect.stringContaining('trained on 14 of the 28')]);
  });

  test('can be on the span of several probes', async () => {
    const { call, asked } = await preparedLab();
    const other = NUMBER.map((_, i) => (i === 3 ? 1 : 0));
    await call('load_probe', { probe_id: 'other', direction: other, layer: 0 });
    expect(await call('causality_protocol', asked)).toMatchObject({ rank: 1 });
    const answer = await call('causality_protocol', { ...asked, with_probe_ids: ['other'], include_evidence: true });
    expect(answer).toMatchObject({ rank: 2, real_auroc: 1, n_samples: 14 });
    expect(answer.record).toMatchObject({ evidence: { direction: { source: 'probes number, other' } } });
    await expect(
      call('causality_protocol', { ...asked, probe_id: undefined, fit: 'logistic', with_probe_ids: ['other'] }),
    ).rejects.toThrow(/adds to probe_id/);
  });

  test('comes after reports of progress', async () => {
    const { call, asked, told } = await preparedLab();
    await call('causality_protocol', asked);
    expect(told.filter((line) => /^The protocol is \d+ % done$/.test(line)).length).toBeGreaterThan(3);
  });
});

describe('the number of questions of a lab session', () => {
  test('grows with every new question, and tells what is spent of the error rate', async () => {
    const { call, asked } = await preparedLab();
    await call('causality_protocol', asked);
    await call('causality_protocol', { ...asked, seed: 1 });
    expect(await call('causality_protocol', { ...asked, seed: 2 })).toMatchObject({
      family: 3,
      multiplicity: { error_rate: 0.05, level: 0.003125, spent: expect.closeTo(0.028125, 10) },
    });
    expect(await call('colab_status')).toMatchObject({ family: 3, error_spent: expect.closeTo(0.028125, 10) });
  });

  test('does not grow when a question is asked again, or gets no answer', async () => {
    const { call, asked } = await preparedLab();
    await call('causality_protocol', asked);
    await call('causality_protocol', { ...asked, feature_name: 'another name' });
    await expect(call('causality_protocol', { ...asked, positive_tokens: ['elephant'] })).rejects.toThrow();
    expect(await call('colab_status')).toMatchObject({ family: 1 });
  });

  test('survives a restart', async () => {
    const folder = temporaryFolder();
    const { call, asked } = await preparedLab(folder);
    await call('causality_protocol', asked);
    const next = toyLab(folder);
    expect(await next.call('causality_protocol', { ...asked, seed: 5 })).toMatchObject({ family: 2 });
  });
});

describe('causality_protocol rejects a question', () => {
  test.each([
    ['neither probe nor fit', { probe_id: undefined }, /probe_id, or fit/],
    ['labels that do not fit the rows', { labels: [1, 0] }, /2 labels for 28 rows/],
    ['one class', { labels: Array.from({ length: 28 }, () => 1) }, /one class only/],
    ['a target word that is two tokens', { positive_tokens: ['elephant'] }, /"elephant" is 4 tokens/],
    ['half of a target', { negative_tokens: undefined }, /both positive_tokens and negative_tokens/],
    ['targets that overlap', { negative_tokens: ['are'] }, /both positive and negative/],
    ['a control that is a target', { control_tokens: ['are', 'the'] }, /both a target and a control/],
    ['a layer out of range', { layer: 4 }, /no layer 4/],
    ['a position outside the prompts', { position: -9 }, /Position -9 is outside/],
  ])('with %s', async (_, change, message) => {
    const { call, asked } = await preparedLab();
    await expect(call('causality_protocol', { ...asked, ...change })).rejects.toMatchObject({
      code: 'invalid_input',
      message: expect.stringMatching(message),
    });
  });

  test('with fewer than 12 of a class', async () => {
    const { call, capturePairs, asked } = await preparedLab();
    const few = call('causality_protocol', { ...asked, capture_id: await capturePairs(11) });
    await expect(few).rejects.toThrow(/at least 12 of each/);
  });

  test('with a capture without labels', async () => {
    const { call, asked } = await preparedLab();
    const { capture_id } = await call('capture_acts', { prompts: ['the cats', 'the cat'], layers: [0] });
    await expect(call('causality_protocol', { ...asked, capture_id })).rejects.toThrow(/no labels/);
  });

  test('when an intervention fails', async () => {
    const engine = createToyEngine();
    const { call, asked } = await preparedLab(temporaryFolder(), engine);
    const run = engine.run;
    engine.run = async (request, signal) => {
      if (request.variants?.some(({ interventions }) => interventions.length > 0)) throw new Error('the worker died');
      return run(request, signal);
    };
    await expect(call('causality_protocol', asked)).rejects.toThrow(/the worker died/);
    expect(await call('colab_status')).toMatchObject({ family: 0 });
  });
});
