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
import { createManifest } from '../../../src/lab/manifest.ts';
import { createCaptureStore } from '../../../src/lab/store/captures.ts';
import { appendDurably, createIncomingFolder, writeDurably } from '../../../src/lab/store/durable.ts';
import { createFamily } from '../../../src/lab/store/family.ts';
import { createManifestLog } from '../../../src/lab/store/manifests.ts';
import { temporaryFolder } from '../../temporary-folder.ts';
import { createToyEngine, NUMBER } from '../toy-engine.ts';
import { toyLab } from '../toy-lab.ts';

const signal = new AbortController().signal;

describe('what a lab keeps', () => {
  test('is there after a restart', async () => {
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

  test('is of one model: another has its own', async () => {
    const first = toyLab();
    const capture_id = await first.capturePairs(3);
    const other = toyLab(first.folder, createToyEngine({ weights: 'c'.repeat(64) }));
    await expect(other.call('probe_eval', { probe_id: 'n', capture_id })).rejects.toMatchObject({
      code: 'unknown_probe',
    });
    expect(await other.call('colab_status')).toMatchObject({ captures_in_memory: 0 });
    expect(await other.capturePairs(3)).not.toBe(capture_id);
  });

  test('is for its owner alone', async () => {
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

  test('that are not finished are not there', async () => {
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

  test('of the same id are kept once', async () => {
    const folder = temporaryFolder();
    await keep(folder, 'cap_1');
    await keep(folder, 'cap_1');
    expect(readdirSync(folder)).toEqual(['cap_1']);
    const capture = await createCaptureStore(folder, 1e9).get('cap_1');
    expect([...capture.rows('p', -1)]).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  });

  test('make room for new ones, those used longest ago first', async () => {
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

  test('of a damaged file are refused by name', async () => {
    const folder = temporaryFolder();
    await keep(folder, 'cap_1');
    const path = join(folder, 'cap_1', 'activations.safetensors');
    writeFileSync(path, readFileSync(path).subarray(0, 40));
    const capture = await createCaptureStore(folder, 1e9).get('cap_1');
    expect(() => capture.rows('p', -1)).toThrow(/activations.safetensors is not a proper safetensors file/);
  });
});

describe('writing', () => {
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

  test('a line after one that was cut off keeps them apart', async () => {
    const path = join(temporaryFolder(), 'lines');
    await appendDurably(path, 'one');
    appendFileSync(path, 'cut o');
    await appendDurably(path, 'two');
    expect(readFileSync(path, 'utf8')).toBe('one\ncut o\ntwo\n');
  });

  test('a folder appears whole, or not at all', async () => {
    const folder = temporaryFolder();
    const incoming = await createIncomingFolder(folder);
    writeFileSync(join(incoming.path, 'a'), '1');
    expect(existsSync(join(folder, 'x'))).toBe(false);
    await incoming.keep('x');
    expect(readFileSync(join(folder, 'x', 'a'), 'utf8')).toBe('1');
  });
});

test('the log of manifests passes over a line that a crash cut off', async () => {
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

describe('the family of questions', () => {
  test('is counted once each, by any number of processes', async () => {
    const folder = temporaryFolder();
    const counted = await Promise.all(
      ['a', 'b', 'a', 'c'].map((question) => createFamily(folder).count(question, signal)),
    );
    expect(Math.max(...counted.map(({ size }) => size))).toBe(3);
    expect(await createFamily(folder).size()).toBe(3);
  });

  test('ends with its lab session, half a day after the last question', async () => {
    const folder = temporaryFolder();
    let now = 1e12;
    const family = createFamily(folder, () => now);
    await family.count('a', signal);
    now += 11 * 3_600_000;
    expect(await family.count('b', signal)).toMatchObject({ size: 2 });
    now += 11 * 3_600_000;
    expect(await family.size()).toBe(2);
    now += 2 * 3_600_000;
    expect(await family.count('c', signal)).toMatchObject({ size: 1 });
  });

  test('forgets a question that got no answer, but not one that got it earlier', async () => {
    const family = createFamily(temporaryFolder());
    await family.count('a', signal);
    await (await family.count('b', signal)).forget();
    await (await family.count('a', signal)).forget();
    expect(await family.size()).toBe(1);
  });
});
