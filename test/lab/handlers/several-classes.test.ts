import { describe, expect, onTestFinished, test } from 'vitest';
import { createLab } from '../../../src/lab/local/local-lab.ts';
import { temporaryFolder } from '../../temporary-folder.ts';
import { createStructured, type Structure } from '../causality/structured-engine.ts';
import { classesOnPlane, EITHER_AXIS } from '../causality/structures.ts';

const FRUIT = ['fig', 'pear', 'plum'];
const FRUIT_TOKENS = { pear: ['answer1'], plum: ['answer2'], fig: ['answer0'] };

async function openLab(
  structure: Structure,
  groups: number,
  labelled: (label: number) => string | number = (one) => one,
) {
  const model = createStructured(structure);
  const folder = temporaryFolder();
  const lab = createLab(model.engine, { data: folder, cache: folder, project: folder }, undefined);
  onTestFinished(() => lab.close());
  const call = (name: string, args: Record<string, unknown>) =>
    lab.call(name, args, { signal: new AbortController().signal, progress: () => {} });
  const rows = model.rows(groups, 1);
  const { capture_id } = await call('capture_acts', {
    prompts: rows.map(({ prompt }) => prompt),
    labels: rows.map(({ label }) => labelled(label)),
    pair_ids: rows.map(({ pair }) => pair),
    layers: [0],
  });
  return { call, capture_id };
}

const openFruit = () => openLab(classesOnPlane(3), 24, (label) => FRUIT[label] ?? '');

describe('classes with names', () => {
  test('are asked about by name, and named in the answer', async () => {
    const { call, capture_id } = await openFruit();
    const asked = { capture_id, fit: 'difference-of-means', class_tokens: FRUIT_TOKENS };
    const answer = await call('causality_protocol', asked);
    expect(answer).toMatchObject({
      verdict: 'causal',
      rank: 2,
      target: { classes: { fig: ['answer0'], pear: ['answer1'], plum: ['answer2'] }, chosen: 'given' },
    });
    const { examples } = answer as { examples: { label: string }[] };
    expect(new Set(examples.map(({ label }) => label))).toEqual(new Set(FRUIT));
  });

  test('have the same evidence as the same classes with numbers', async () => {
    const [named, numbered] = [await openFruit(), await openLab(classesOnPlane(3), 24)];
    const effectsOf = async ({ call, capture_id }: typeof named) =>
      (await call('causality_protocol', { capture_id, fit: 'difference-of-means' })).effects;
    expect(await effectsOf(named)).toEqual(await effectsOf(numbered));
  });

  test('may be two', async () => {
    const { call, capture_id } = await openLab(classesOnPlane(2), 24, (label) => FRUIT[label] ?? '');
    const asked = { capture_id, fit: 'difference-of-means' };
    const class_tokens = { fig: ['answer0'], pear: ['answer1'] };
    expect(await call('causality_protocol', { ...asked, class_tokens })).toMatchObject({
      verdict: 'causal',
      target: { classes: class_tokens },
    });
    await expect(
      call('causality_protocol', { ...asked, positive_tokens: ['answer1'], negative_tokens: ['answer0'] }),
    ).rejects.toThrow(/Give class_tokens/);
  });

  test.each<[string, Record<string, unknown>, RegExp]>([
    ['a class without words', { class_tokens: { fig: ['answer0'], pear: ['answer1'] } }, /no words for the class plum/],
    ['words of a class that is none', { class_tokens: { kiwi: ['answer0'] } }, /no class "kiwi".* fig, pear, plum/],
    ['words for two classes only', { positive_tokens: ['answer1'], negative_tokens: ['answer0'] }, /Give class_tokens/],
    ['words given twice', { class_tokens: FRUIT_TOKENS, positive_tokens: ['answer1'] }, /but not both/],
    ['a rank of what has none to choose', { rank: 2 }, /rank is for fit: interchange/],
    ['names and numbers', { labels: ['fig', ...Array(71).fill(1)] }, /Some labels are numbers and some are names/],
    ['a number that is left out', { labels: [...Array(36).fill(0), ...Array(36).fill(2)] }, /No row has label 1/],
    ['a number that is none', { labels: [...Array(71).fill(0), 0.5] }, /Label 71 is 0.5/],
  ])('are refused with %s', async (_, changes, message) => {
    const { call, capture_id } = await openFruit();
    await expect(call('causality_protocol', { capture_id, fit: 'difference-of-means', ...changes })).rejects.toThrow(
      message,
    );
  });

  test('are more than probe_eval and patch_map compare', async () => {
    const { call, capture_id } = await openFruit();
    await call('train_probe', { probe_id: 'fruit', capture_id, layer: 0, method: 'difference-of-means' });
    await expect(call('probe_eval', { probe_id: 'fruit', capture_id })).rejects.toThrow(/compares two classes/);
    await expect(call('patch_map', { capture_id, method: 'interchange' })).rejects.toThrow(/compares two classes/);
  });
});

describe('a subspace that is trained', () => {
  test('on interchange is kept as a probe, and tested as one on rows that it has not seen', async () => {
    const { call, capture_id } = await openLab(EITHER_AXIS, 48);
    const trained = await call('train_probe', {
      probe_id: 'plane',
      capture_id,
      layer: 0,
      method: 'interchange',
      rank: 2,
      held_out: 0.5,
      class_tokens: { 0: ['answer0'], 1: ['answer1'] },
    });
    expect(trained).toMatchObject({ probe: { rank: 2, training: { method: 'interchange' } }, n_held_out: 48 });
    expect(trained.auroc).toBeGreaterThan(0.95);
    const tokens = { positive_tokens: ['answer1'], negative_tokens: ['answer0'] };
    const answer = await call('causality_protocol', { capture_id, probe_id: 'plane', ...tokens });
    expect(answer).toMatchObject({ verdict: 'causal', rank: 2, n_samples: 48 });
    expect(await call('probe_eval', { probe_id: 'plane', capture_id })).toMatchObject({ evaluated_rows: 'held-out' });
  });

  test('between the means of three classes is kept, too', async () => {
    const { call, capture_id } = await openFruit();
    const method = 'difference-of-means';
    const trained = await call('train_probe', { probe_id: 'fruit', capture_id, layer: 0, method, held_out: 0.5 });
    expect(trained).toMatchObject({ probe: { rank: 2, training: { classes: FRUIT } } });
    expect(trained.auroc).toBeGreaterThan(0.95);
    await expect(call('train_probe', { probe_id: 'f', capture_id, layer: 0, method: 'logistic' })).rejects.toThrow(
      /between two classes/,
    );
    await expect(call('train_probe', { probe_id: 'f', capture_id, layer: 0, method, rank: 1 })).rejects.toThrow(/rank/);
  });

  test('is fitted by the protocol itself, and by a sweep, which gives the arguments for it', async () => {
    const { call, capture_id } = await openFruit();
    const asked = { capture_id, fit: 'interchange', rank: 2, class_tokens: FRUIT_TOKENS };
    expect(await call('causality_protocol', asked)).toMatchObject({
      verdict: 'causal',
      rank: 2,
      fitted: { recovered: expect.any(Number), axes: expect.any(Number) },
    });
    const { best } = (await call('sweep', asked)) as { best: { protocol: Record<string, unknown> }[] };
    expect(best[0]?.protocol).toMatchObject({ fit: 'interchange', rank: 2, class_tokens: FRUIT_TOKENS });
  });
});
