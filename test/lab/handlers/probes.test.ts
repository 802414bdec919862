import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { encodeSafetensors } from '../../../src/lab/formats/safetensors.ts';
import { temporaryFolder } from '../../temporary-folder.ts';
import { NUMBER, toyPairs } from '../toy-engine.ts';
import { toyLab } from '../toy-lab.ts';

const WIDTH = 16;

function probesFolder(folder: string): string {
  return join(folder, 'lab', readdirSync(join(folder, 'lab'))[0] ?? '', 'probes');
}

describe('training a probe', () => {
  test.each(['logistic', 'difference-of-means'])('by %s finds the direction that the model carries', async (method) => {
    const { call, folder } = toyLab();
    const { prompts, labels, pairs } = toyPairs(40);
    const answer = await call('train_probe', {
      probe_id: 'number',
      prompts,
      labels,
      pair_ids: pairs,
      layer: 0,
      method,
    });
    expect(answer).toMatchObject({
      probe: { id: 'number', model_id: 'toy', layer: 0, position: 'end_question', license: null, source_url: null },
      n_train: 56,
      n_held_out: 24,
      auroc: 1,
      train_auroc: 1,
      notes: [],
    });
    const kept = JSON.parse(readFileSync(join(probesFolder(folder), 'number.json'), 'utf8'));
    expect(kept.training).toMatchObject({ method, split_by: 'pair', n_train: 56 });
    expect(kept.layer).toBe(0);
  });

  test('tests it on rows of other pairs', async () => {
    const { call, capturePairs } = toyLab();
    const capture_id = await capturePairs(20);
    await call('train_probe', { probe_id: 'a', capture_id, layer: 0 });
    const { n_evaluated, evaluated_rows, n_samples, notes } = await call('probe_eval', { probe_id: 'a', capture_id });
    expect({ n_evaluated, evaluated_rows, n_samples }).toEqual({
      n_evaluated: 12,
      evaluated_rows: 'held-out',
      n_samples: 40,
    });
    expect(notes).toEqual([expect.stringContaining('12 rows that the probe was not trained on')]);
  });

  test('on random labels shows chance level on the held-out rows', async () => {
    const { call } = toyLab();
    const { prompts } = toyPairs(60);
    const labels = prompts.map((_, i) => ((i * 7919) % 13 > 6 ? 1 : 0));
    const answer = await call('train_probe', { probe_id: 'noise', prompts, labels, layer: 1, c: 1e4, held_out: 0.5 });
    const [low = 0, high = 0] = answer.auroc_interval as number[];
    expect(low).toBeLessThan(0.5);
    expect(high).toBeGreaterThan(0.5);
    expect(answer.train_auroc).toBeGreaterThan(Number(answer.auroc));
  });

  test('holds out whole templates where there are no pairs', async () => {
    const { call, folder } = toyLab();
    const { prompts, labels } = toyPairs(24);
    const template_ids = prompts.map((_, i) => i % 6);
    await call('train_probe', { probe_id: 't', prompts, labels, template_ids, layer: 0, held_out: 0.34 });
    const { training } = JSON.parse(readFileSync(join(probesFolder(folder), 't.json'), 'utf8'));
    expect(training).toMatchObject({ split_by: 'template', n_held_out: 24 });
  });

  test('gives the same from the same seed, and another split from another seed', async () => {
    const { call, capturePairs } = toyLab();
    const capture_id = await capturePairs(20);
    const train = (seed: number) => call('train_probe', { probe_id: 'a', capture_id, layer: 0, seed });
    const first = await train(1);
    expect((await train(1)).manifest_sha256).toBe(first.manifest_sha256);
    expect((await train(2)).manifest_sha256).not.toBe(first.manifest_sha256);
  });

  test('with nothing held out says that nothing is known of other rows', async () => {
    const { call, capturePairs } = toyLab();
    const capture_id = await capturePairs(5);
    const answer = await call('train_probe', { probe_id: 'a', capture_id, layer: 0, held_out: 0 });
    expect(answer).toMatchObject({ auroc: null, auroc_interval: null, n_held_out: 0 });
    await expect(call('probe_eval', { probe_id: 'a', capture_id })).rejects.toThrow(/trained on all rows/);
    const forced = await call('probe_eval', { probe_id: 'a', capture_id, include_training_rows: true });
    expect(forced).toMatchObject({ auroc: 1, evaluated_rows: 'all' });
  });

  test.each([
    ['no data', { layer: 0 }, /either prompts or capture_id/],
    ['pairs beside a capture', { layer: 0, capture_id: 'cap_1', pair_ids: ['a'] }, /A capture has its own pair_ids/],
    ['one class', { layer: 0, prompts: ['the cat', 'the dog'], labels: [1, 1] }, /same label/],
    ['no labels', { layer: 0, prompts: ['the cat', 'the dog'] }, /no labels/],
    ['a layer out of range', { layer: 5, prompts: ['the cat', 'the dogs'], labels: [0, 1] }, /no layer 5/],
    ['too few rows', { layer: 0, prompts: ['the cat', 'the dogs'], labels: [0, 1] }, /too few/],
    ['an id that is none', { probe_id: '../x', layer: 0, prompts: ['a'], labels: [0] }, /probe_id/],
  ])('with %s is refused', async (_, args, message) => {
    await expect(toyLab().call('train_probe', { probe_id: 'a', ...args })).rejects.toMatchObject({
      code: 'invalid_input',
      message: expect.stringMatching(message),
    });
  });
});

describe('loading a probe', () => {
  test('works from numbers', async () => {
    const { call } = toyLab();
    const answer = await call('load_probe', {
      probe_id: 'n',
      direction: NUMBER,
      bias: 0.5,
      layer: -1,
      position: -1,
      license: 'mit',
    });
    expect(answer).toMatchObject({
      probe: { id: 'n', layer: 1, position: -1, license: 'mit' },
      norm: expect.closeTo(1, 5),
    });
  });

  test('works from the files that probes are exchanged in', async () => {
    const folder = temporaryFolder();
    const { call } = toyLab();
    writeFileSync(
      join(folder, 'p.json'),
      JSON.stringify({
        model_id: 'x/other',
        layer: 1,
        position: 'last_token',
        license: 'apache-2.0',
        training: { n: 3 },
      }),
    );
    const data = Float32Array.from(NUMBER);
    writeFileSync(
      join(folder, 'p.safetensors'),
      encodeSafetensors({ direction: { dtype: 'F32', shape: [WIDTH], data } }),
    );
    for (const source of [join(folder, 'p'), join(folder, 'p.json'), join(folder, 'p.safetensors')]) {
      const answer = await call('load_probe', { probe_id: 'p', source });
      expect(answer).toMatchObject({
        probe: { layer: 1, position: 'last_token', license: 'apache-2.0', training: { n: 3 } },
      });
      expect(answer.notes).toEqual([expect.stringContaining('x/other')]);
    }
  });

  test('works for a probe that another lab has trained', async () => {
    const first = toyLab();
    const capture_id = await first.capturePairs(10);
    await first.call('train_probe', { probe_id: 'a', capture_id, layer: 0 });
    const second = toyLab();
    await second.call('load_probe', { probe_id: 'b', source: join(probesFolder(first.folder), 'a') });
    await second.capturePairs(10);
    const ofFirst = await first.call('probe_eval', { probe_id: 'a', capture_id, include_training_rows: true });
    const ofSecond = await second.call('probe_eval', { probe_id: 'b', capture_id });
    expect(ofSecond.scores).toEqual(ofFirst.scores);
  });

  test('of another width is refused with both widths', async () => {
    const loading = toyLab().call('load_probe', { probe_id: 'n', direction: [1, 2, 3], layer: 0 });
    await expect(loading).rejects.toThrow(/has 3 numbers, and toy is 16 wide/);
  });

  test.each([
    ['nothing', {}, /either direction, as numbers, or source/],
    ['no layer', { direction: NUMBER }, /Which layer/],
    ['zeros', { direction: NUMBER.map(() => 0), layer: 0 }, /zero/],
    ['a layer out of range', { direction: NUMBER, layer: 9 }, /no layer 9/],
    ['an unknown position', { direction: NUMBER, layer: 0, position: 'x' }, /no position/],
  ])('with %s is refused', async (_, args, message) => {
    await expect(toyLab().call('load_probe', { probe_id: 'n', ...args })).rejects.toMatchObject({
      code: 'invalid_input',
      message: expect.stringMatching(message),
    });
  });

  test('from a file that is absent or damaged is refused', async () => {
    const folder = temporaryFolder();
    const { call } = toyLab();
    const load = (source: string) => call('load_probe', { probe_id: 'n', source, layer: 0 });
    await expect(load(join(folder, 'none'))).rejects.toMatchObject({ code: 'bad_model' });
    writeFileSync(join(folder, 'bad.json'), '{}');
    writeFileSync(join(folder, 'bad.safetensors'), 'not tensors');
    await expect(load(join(folder, 'bad'))).rejects.toMatchObject({ code: 'bad_model' });
    writeFileSync(join(folder, 'bad.pt'), 'not a zip');
    await expect(load(join(folder, 'bad.pt'))).rejects.toMatchObject({ code: 'bad_model' });
  });

  test('from a pickle that would run code does not run it', async () => {
    const folder = temporaryFolder();
    const script = `
import pickle, os, zipfile
class Evil:
    def __reduce__(self): return (os.system, ('touch ${folder}/ran',))
with zipfile.ZipFile('${folder}/evil.pt', 'w') as z:
    z.writestr('archive/data.pkl', pickle.dumps({'direction': Evil()}, protocol=2))
    z.writestr('archive/version', '3')
`;
    execFileSync('python3', ['-c', script]);
    const loading = toyLab().call('load_probe', { probe_id: 'n', source: join(folder, 'evil.pt'), layer: 0 });
    await expect(loading).rejects.toMatchObject({ code: 'bad_model' });
    expect(existsSync(join(folder, 'ran'))).toBe(false);
  });
});

describe('evaluating a probe', () => {
  test('gives scores, AUROC with its interval, calibration, and random directions', async () => {
    const { call, capturePairs } = toyLab();
    await call('load_probe', { probe_id: 'n', direction: NUMBER.map((value) => value * 3), layer: 0 });
    const capture_id = await capturePairs(30);
    const answer = await call('probe_eval', { probe_id: 'n', capture_id });
    expect(answer).toMatchObject({
      probe_id: 'n',
      layer: 0,
      n_samples: 60,
      n_evaluated: 60,
      evaluated_rows: 'all',
      auroc: 1,
      auroc_interval: [1, 1],
    });
    expect(answer.scores).toHaveLength(60);
    const { calibration, random_directions: random } = answer as {
      calibration: { brier: number; bins: unknown[] };
      random_directions: Record<string, number>;
    };
    expect(calibration.brier).toBeLessThan(0.1);
    expect(calibration.bins.length).toBeGreaterThan(0);
    expect(random).toMatchObject({ n: 199 });
    expect(random.auroc_mean).toBeLessThan(1);
  });

  test('without labels gives scores alone', async () => {
    const { call } = toyLab();
    await call('load_probe', { probe_id: 'n', direction: NUMBER, layer: 0 });
    const { capture_id } = await call('capture_acts', { prompt: 'the red cats', layers: [0] });
    const answer = await call('probe_eval', { probe_id: 'n', capture_id });
    expect(answer).toMatchObject({ n_samples: 1, auroc: null, calibration: null, random_directions: null });
  });

  test('recognises prompts that the probe was trained on, in whatever capture they are', async () => {
    const { call, capturePairs } = toyLab();
    const capture_id = await capturePairs(20);
    await call('train_probe', { probe_id: 'a', capture_id, layer: 0 });
    const again = await capturePairs(20, { layers: [0, 1] });
    expect(again).not.toBe(capture_id);
    expect(await call('probe_eval', { probe_id: 'a', capture_id: again })).toMatchObject({
      evaluated_rows: 'held-out',
    });
  });

  test('on very many rows shortens the scores, unless asked for all', async () => {
    const { call } = toyLab();
    await call('load_probe', { probe_id: 'n', direction: NUMBER, layer: 0 });
    const prompts = Array.from({ length: 600 }, () => 'the cats');
    const { capture_id } = await call('capture_acts', { prompts, layers: [0] });
    const short = await call('probe_eval', { probe_id: 'n', capture_id });
    const long = await call('probe_eval', { probe_id: 'n', capture_id, all_scores: true });
    expect([short.scores, long.scores].map((scores) => (scores as number[]).length)).toEqual([500, 600]);
    expect(short.manifest_sha256).toBe(long.manifest_sha256);
  });

  test('names what is missing', async () => {
    const { call, capturePairs } = toyLab();
    const capture_id = await capturePairs(3);
    await expect(call('probe_eval', { probe_id: 'none', capture_id })).rejects.toMatchObject({ code: 'unknown_probe' });
    await call('load_probe', { probe_id: 'n', direction: NUMBER, layer: 1 });
    await expect(call('probe_eval', { probe_id: 'n', capture_id: 'cap_0' })).rejects.toMatchObject({
      code: 'unknown_capture',
    });
    await expect(call('probe_eval', { probe_id: 'n', capture_id: '../..' })).rejects.toMatchObject({
      code: 'unknown_capture',
    });
    await expect(call('probe_eval', { probe_id: 'n', capture_id })).rejects.toThrow(
      /has no blocks.1.hook_resid_post. It has: blocks.0.hook_resid_post/,
    );
    const labels = call('probe_eval', { probe_id: 'n', capture_id, layer: 0, labels: [1, 0] });
    await expect(labels).rejects.toThrow(/2 labels for 6 rows of the capture/);
  });
});

test('probes are listed without their directions', async () => {
  const { call } = toyLab();
  await call('load_probe', { probe_id: 'b', direction: NUMBER, layer: 0 });
  await call('load_probe', { probe_id: 'a', direction: NUMBER, layer: 1, source_url: 'https://example.org/a' });
  const { probes, model_id } = await call('list_probes');
  expect(model_id).toBe('toy');
  expect(probes).toMatchObject([{ id: 'a', layer: 1, source_url: 'https://example.org/a' }, { id: 'b' }]);
  expect(JSON.stringify(probes)).not.toContain('direction');
});
