import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { appendDurably, createIncomingFolder, writeDurably } from '../../../src/lab/core/durable-files.ts';
import { createManifest } from '../../../src/lab/core/manifest.ts';
import { encodeSafetensors } from '../../../src/lab/formats/safetensors.ts';
import { createCaptureStore } from '../../../src/lab/store/captures.ts';
import { createFamily } from '../../../src/lab/store/family.ts';
import { createManifestLog } from '../../../src/lab/store/manifests.ts';
import { temporaryFolder } from '../../temporary-folder.ts';
import { createToyEngine, NUMBER } from '../toy-engine.ts';
import { toyLab } from '../toy-lab.ts';

const signal = new AbortController().signal;

describe('the store of a lab', () => {
  test('survives a restart', async () => {
    const first = toyLab();
    const capture_id = await first.capturePairs(6);
    await first.call('load_probe', { probe_id: 'n', direction: NUMBER, layer: 0 });
    const before = await first.call('probe_eval', { probe_id: 'n', capture_id });
    await first.lab.close();

    const next = toyLab(first.folder);
    expect(await next.call('colab_status')).toMatchObject({ probes_loaded: 1, captures_in_memory: 1 });
    expect(await next.call('probe_eval', { probe_id: 'n', capture_id })).toEqual(before);
    const { manifests } = await next.call('list_manifests');
    expect((manifests as { tool: string }[]).map(({ tool }) => tool)).toEqual([
      'probe_eval',
      'probe_eval',
      'load_probe',
      'capture_acts',
    ]);
    expect(await next.call('list_manifests', { limit: 1 })).toMatchObject({
      manifests: [{ manifest_sha256: before.manifest_sha256 }],
    });
  });

  test('belongs to one model, and another model has its own', async () => {
    const first = toyLab();
    const capture_id = await first.capturePairs(3);
    const other = toyLab(first.folder, createToyEngine({ weights: 'c'.repeat(64) }));
    await expect(other.call('probe_eval', { probe_id: 'n', capture_id })).rejects.toMatchObject({
      code: 'unknown_probe',
    });
    expect(await other.call('colab_status')).toMatchObject({ captures_in_memory: 0 });
    expect(await other.capturePairs(3)).not.toBe(capture_id);
  });

  test('can be read by its owner only', async () => {
    const { folder, capturePairs } = toyLab();
    await capturePairs(3);
    const store = join(folder, 'lab', readdirSync(join(folder, 'lab'))[0] ?? '');
    expect(statSync(store).mode & 0o077).toBe(0);
    expect(statSync(join(store, 'manifests.jsonl')).mode & 0o077).toBe(0);
  });

  test('has manifests that cover weights, tokenizer, data, seed and the program', async () => {
    const { call, capturePairs } = toyLab();
    await call('train_probe', { probe_id: 'a', capture_id: await capturePairs(10), layer: 0, seed: 7 });
    const { manifests } = await call('list_manifests', { limit: 1 });
    expect(manifests).toMatchObject([
      {
        tool: 'train_probe',
        config: {
          program: expect.any(String),
          weights: 'a'.repeat(64),
          tokenizer: 'b'.repeat(64),
          data: expect.stringMatching(/^[0-9a-f]{64}$/),
          seed: 7,
        },
      },
    ]);
  });
});

describe('captures', () => {
  const shape = { points: ['p'], positions: [-1], prompts: 2, width: 4 };
  const record = {
    format: 1 as const,
    model: { id: 'm', weights: 'w', tokenizer: 't' },
    points: ['p'],
    positions: [{ spec: -1, position: -1 }],
    width: 4,
    prompts: ['a', 'b'],
    tokenCounts: [1, 1],
    data: 'd',
    activations: 'x',
  };

  async function keep(folder: string, id: string, mostBytes = 1e9) {
    const draft = await createCaptureStore(folder, mostBytes).draft(shape);
    await draft.append('p', -1, Float32Array.from([1, 2, 3, 4]));
    await draft.append('p', -1, Float32Array.from([5, 6, 7, 8]));
    await draft.finish();
    await draft.keep(id, record);
    await draft.discard();
  }

  test('that are not finished are not listed', async () => {
    const folder = temporaryFolder();
    const store = createCaptureStore(folder, 1e9);
    const draft = await store.draft(shape);
    await draft.append('p', -1, Float32Array.from([1, 2, 3, 4]));
    expect(await store.ids()).toEqual([]);
    await draft.discard();
    expect(readdirSync(folder)).toEqual([]);
  });

  test('that a crash left half are removed, once they are old', async () => {
    const folder = temporaryFolder();
    for (const name of ['.incoming-old', '.incoming-new']) mkdirSync(join(folder, name));
    utimesSync(join(folder, '.incoming-old'), 0, 0);
    await keep(folder, 'cap_1');
    expect(readdirSync(folder).sort()).toEqual(['.incoming-new', 'cap_1']);
    expect(await createCaptureStore(folder, 1e9).ids()).toEqual(['cap_1']);
  });

  test('of the same id are stored once', async () => {
    const folder = temporaryFolder();
    await keep(folder, 'cap_1');
    await keep(folder, 'cap_1');
    expect(readdirSync(folder)).toEqual(['cap_1']);
    const capture = await createCaptureStore(folder, 1e9).get('cap_1');
    expect([...capture.rows('p', -1)]).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  });

  test('are evicted for new ones, the least recently used first', async () => {
    const folder = temporaryFolder();
    await keep(folder, 'cap_1');
    const size = statSync(join(folder, 'cap_1', 'activations.safetensors')).size;
    await keep(folder, 'cap_2');
    utimesSync(join(folder, 'cap_1'), 1, 1);
    utimesSync(join(folder, 'cap_2'), 2, 2);
    await createCaptureStore(folder, 1e9).get('cap_1');
    await keep(folder, 'cap_3', 2 * size);
    expect(readdirSync(folder).sort()).toEqual(['cap_1', 'cap_3']);
  });

  test('of a damaged file are refused with its name', async () => {
    const folder = temporaryFolder();
    await keep(folder, 'cap_1');
    const path = join(folder, 'cap_1', 'activations.safetensors');
    writeFileSync(path, readFileSync(path).subarray(0, 40));
    const capture = await createCaptureStore(folder, 1e9).get('cap_1');
    expect(() => capture.rows('p', -1)).toThrow(/activations.safetensors is not a proper safetensors file/);
  });
});

describe('a capture with damaged files is refused, with what is wrong:', () => {
  async function damagedCapture(damage: (record: Record<string, unknown>) => string) {
    const lab = toyLab();
    const capture_id = await lab.capturePairs(6);
    const path = join(lab.folder, 'lab', readdirSync(join(lab.folder, 'lab'))[0] ?? '', 'captures', capture_id);
    const file = join(path, 'capture.json');
    writeFileSync(file, damage(JSON.parse(readFileSync(file, 'utf8'))));
    return lab.call('train_probe', { probe_id: 'n', capture_id, layer: 0 });
  }

  test.each<[string, (record: Record<string, unknown>) => string, RegExp]>([
    ['a record that was cut short', (record) => JSON.stringify(record).slice(0, 200), /capture\.json is not a capture/],
    ['no width', ({ width: _, ...rest }) => JSON.stringify(rest), /capture\.json .*width/s],
    [
      'a label less than prompts',
      ({ labels, ...rest }) => JSON.stringify({ ...rest, labels: (labels as number[]).slice(1) }),
      /11 for 12 prompts.*labels/s,
    ],
    [
      'activations of fewer rows than prompts',
      ({ prompts, tokenCounts, labels, pairs, ...rest }) => {
        const twice = (list: unknown) => [...(list as unknown[]), ...(list as unknown[])];
        return JSON.stringify({
          ...rest,
          prompts: twice(prompts),
          tokenCounts: twice(tokenCounts),
          labels: twice(labels),
          pairs: twice(pairs),
        });
      },
      /activations\.safetensors has 192 numbers .* 24 prompts of width 16 have 384/,
    ],
  ])('%s', async (_, damage, message) => {
    await expect(damagedCapture(damage)).rejects.toMatchObject({
      code: 'bad_model',
      message: expect.stringMatching(message),
    });
  });
});

describe('a probe with a damaged file is refused, with what is wrong:', () => {
  async function damagedProbe(damage: (about: Record<string, unknown>) => unknown) {
    const lab = toyLab();
    const capture_id = await lab.capturePairs(10);
    await lab.call('train_probe', { probe_id: 'n', capture_id, layer: 0 });
    const folder = join(lab.folder, 'lab', readdirSync(join(lab.folder, 'lab'))[0] ?? '', 'probes');
    const file = join(folder, 'n.json');
    writeFileSync(file, JSON.stringify(damage(JSON.parse(readFileSync(file, 'utf8')))));
    return { folder, evaluated: lab.call('probe_eval', { probe_id: 'n', capture_id }) };
  }

  test.each<[string, (about: Record<string, unknown>) => unknown, RegExp]>([
    ['no layer, which would be the last', ({ layer: _, ...rest }) => rest, /n\.json cannot be used: it has no layer/],
    ['no position', ({ position: _, ...rest }) => rest, /n\.json cannot be used: it has no position/],
    ['no model', ({ model_id: _, ...rest }) => rest, /n\.json cannot be used: it has no model_id/],
    [
      'no prompts that it has seen, on which it would be tested',
      ({ training, ...rest }) => {
        const { trained_on: _, ...others } = training as Record<string, unknown>;
        return { ...rest, training: others };
      },
      /its training is not whole:.*trained_on/s,
    ],
    [
      'no calibration',
      ({ training, ...rest }) => {
        const { calibration: _, ...others } = training as Record<string, unknown>;
        return { ...rest, training: others };
      },
      /its training is not whole:.*calibration/s,
    ],
  ])('%s', async (_, damage, message) => {
    const { evaluated } = await damagedProbe(damage);
    await expect(evaluated).rejects.toMatchObject({ code: 'bad_model', message: expect.stringMatching(message) });
  });

  test.each([
    ['a layer that is neither a number nor a name', { layer: true }, 'layer'],
    ['a model that is no text', { layer: 0, model_id: 7 }, 'model_id'],
    ['a training that is a list', { layer: 0, training: ['rows'] }, 'training'],
  ])('%s, in a file of others', async (_, about, field) => {
    const lab = toyLab();
    const path = join(lab.folder, 'p');
    const direction = { dtype: 'F32' as const, shape: [16], data: Float32Array.from(NUMBER) };
    writeFileSync(`${path}.safetensors`, encodeSafetensors({ direction }));
    writeFileSync(`${path}.json`, JSON.stringify(about));
    await expect(lab.call('load_probe', { probe_id: 'p', source: path })).rejects.toMatchObject({
      code: 'bad_model',
      message: expect.stringMatching(new RegExp(`p\\.json is not .*${field}`, 's')),
    });
  });

  test('a bias without a number', async () => {
    const lab = toyLab();
    const path = join(lab.folder, 'p');
    writeFileSync(
      `${path}.safetensors`,
      encodeSafetensors({
        direction: { dtype: 'F32', shape: [16], data: Float32Array.from(NUMBER) },
        bias: { dtype: 'F32', shape: [0], data: new Float32Array() },
      }),
    );
    writeFileSync(`${path}.json`, JSON.stringify({ layer: 0 }));
    await expect(lab.call('load_probe', { probe_id: 'p', source: path })).rejects.toMatchObject({
      code: 'bad_model',
      message: expect.stringContaining('has 0 numbers, and must have one'),
    });
  });
});

describe('durable writing', () => {
  test('replaces a file as a whole, and leaves nothing else', async () => {
    const folder = temporaryFolder();
    await writeDurably(join(folder, 'a', 'b.json'), 'one');
    await writeDurably(join(folder, 'a', 'b.json'), 'two');
    expect(readFileSync(join(folder, 'a', 'b.json'), 'utf8')).toBe('two');
    expect(readdirSync(join(folder, 'a'))).toEqual(['b.json']);
  });

  test('to a folder that cannot be written leaves what was there', async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, 'file'), 'x');
    await expect(writeDurably(join(folder, 'file', 'b.json'), 'two')).rejects.toThrow();
    expect(readFileSync(join(folder, 'file'), 'utf8')).toBe('x');
  });

  test('keeps a line apart from one that was cut off', async () => {
    const path = join(temporaryFolder(), 'lines');
    await appendDurably(path, 'one');
    appendFileSync(path, 'cut o');
    await appendDurably(path, 'two');
    expect(readFileSync(path, 'utf8')).toBe('one\ncut o\ntwo\n');
  });

  test('makes a folder appear complete, or not at all', async () => {
    const folder = temporaryFolder();
    const incoming = await createIncomingFolder(folder);
    writeFileSync(join(incoming.path, 'a'), '1');
    expect(existsSync(join(folder, 'x'))).toBe(false);
    await incoming.keep('x');
    expect(readFileSync(join(folder, 'x', 'a'), 'utf8')).toBe('1');
  });
});

test('the log of manifests skips a line that a crash cut off', async () => {
  const path = join(temporaryFolder(), 'manifests.jsonl');
  const log = createManifestLog(path);
  const manifest = (tool: string) =>
    createManifest({ tool, inputs: {}, outputs: {}, config: {} }, { time: 't', id: 'i' });
  await log.append(manifest('one'));
  appendFileSync(path, '{"tool": "cut');
  await log.append(manifest('two'));
  expect((await log.latest(10)).map(({ tool }) => tool)).toEqual(['two', 'one']);
  expect(await log.latest(1)).toHaveLength(1);
});

test('the log of manifests names the line and the field of an entry that is no manifest', async () => {
  const path = join(temporaryFolder(), 'manifests.jsonl');
  const log = createManifestLog(path);
  const manifest = createManifest({ tool: 'one', inputs: {}, outputs: {}, config: {} }, { time: 't', id: 'i' });
  await log.append(manifest);
  appendFileSync(path, `${JSON.stringify({ ...manifest, manifest_sha256: 7 })}\n`);
  await expect(log.latest(10)).rejects.toMatchObject({
    code: 'unreadable_file',
    message: expect.stringMatching(/^Line 2 of .*manifests\.jsonl is not a manifest: .*manifest_sha256/s),
  });
});

describe('the family of questions', () => {
  test('is counted once each, by any number of processes', async () => {
    const folder = temporaryFolder();
    const counted = await Promise.all(
      ['a', 'b', 'a', 'c'].map((question) => createFamily(folder).count(question, signal)),
    );
    const numbers = counted.map(({ number }) => number);
    expect(new Set(numbers)).toEqual(new Set([1, 2, 3]));
    expect(numbers[0]).toBe(numbers[2]);
    expect(await createFamily(folder).state()).toMatchObject({ size: 3 });
  });

  test('ends with its lab session, half a day after the last question', async () => {
    const folder = temporaryFolder();
    let now = 1e12;
    const family = createFamily(folder, () => now);
    await family.count('a', signal);
    now += 11 * 3_600_000;
    expect(await family.count('b', signal)).toMatchObject({ number: 2 });
    now += 11 * 3_600_000;
    expect(await family.state()).toMatchObject({ size: 2 });
    now += 2 * 3_600_000;
    expect(await family.count('c', signal)).toMatchObject({ number: 1 });
  });

  test.each([
    ['that was cut short', (path: string) => writeFileSync(path, '{"last": 1, "quest')],
    ['without its questions', (path: string) => writeFileSync(path, '{"last": 1}')],
    ['that cannot be read', (path: string) => mkdirSync(path)],
  ])('is not taken for empty from a file %s', async (_, damage) => {
    const folder = temporaryFolder();
    damage(join(folder, 'family.json'));
    const refused = { code: 'folder_unusable', message: expect.stringContaining('family.json') };
    await expect(createFamily(folder).state()).rejects.toMatchObject(refused);
    await expect(createFamily(folder).count('a', signal)).rejects.toMatchObject(refused);
  });

  test('forgets a question that got no answer, but not one that got it earlier', async () => {
    const family = createFamily(temporaryFolder());
    await family.count('a', signal);
    await (await family.count('b', signal)).forget();
    await (await family.count('a', signal)).forget();
    expect(await family.state()).toMatchObject({ size: 1 });
  });

  test('gives a question that is asked again its old number, and the place of one that got no answer to the next', async () => {
    const family = createFamily(temporaryFolder());
    await family.count('a', signal);
    const unanswered = await family.count('b', signal);
    expect(await family.count('c', signal)).toMatchObject({ number: 3 });
    await unanswered.forget();
    expect(await family.count('c', signal)).toMatchObject({ number: 3 });
    expect(await family.count('d', signal)).toMatchObject({ number: 2 });
    const { size, spent } = await family.state();
    expect([size, spent]).toEqual([3, expect.closeTo(0.025 + 0.003125, 10)]);
  });
});
