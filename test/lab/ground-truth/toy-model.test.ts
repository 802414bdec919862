import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openSafetensors } from '../../../src/lab/formats/safetensors.ts';
import { openModelFolder } from '../../../src/lab/models/open-model.ts';
import { createRandom } from '../../../src/lab/statistics/random.ts';
import { dot } from '../../../src/lab/statistics/vectors.ts';
import { randomRotation } from './matrices.ts';
import { writeToyModel } from './toy-model.ts';
import { CASE_NAMES, makeToyQuestion } from './toy-questions.ts';
import { VOCABULARY } from './toy-words.ts';
import { writeRandomTwin } from './twin.ts';

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'cuvette-toy-test-'));
});

afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

describe('hand-built models', () => {
  test('are folders that open like any model, with a token for each word', async () => {
    writeToyModel(join(folder, 'opens'), 'reads-concept', 1);
    const model = await openModelFolder(join(folder, 'opens'));
    expect(model.spec).toMatchObject({
      architecture: 'LlamaForCausalLM',
      layers: 2,
      width: 128,
      heads: 2,
      vocabulary: 32,
    });
    expect(VOCABULARY).toHaveLength(32);
    expect(model.tokenizer.encode(VOCABULARY.join(' '))).toEqual(VOCABULARY.map((_, id) => id));
    expect(statSync(join(folder, 'opens', 'model.safetensors')).size).toBeLessThan(300_000);
    model.close();
  });

  test('are the same for the same seed, and have no axis that means something', () => {
    const toy = writeToyModel(join(folder, 'first'), 'reads-concept', 1);
    writeToyModel(join(folder, 'second'), 'reads-concept', 1);
    const bytes = (name: string) => readFileSync(join(folder, name, 'model.safetensors'));
    expect(bytes('second').equals(bytes('first'))).toBe(true);
    const concept = toy.direction({ concept: 1 });
    expect(dot(concept, concept)).toBeCloseTo(1, 10);
    expect(Math.max(...concept.map(Math.abs))).toBeLessThan(0.5);
    expect(dot(concept, toy.direction({ correlate: 1 }))).toBeCloseTo(0, 10);
  });

  test('are rotated by an orthogonal matrix', () => {
    const { values } = randomRotation(40, createRandom(1, 'rotation'));
    const row = (i: number) => values.subarray(i * 40, (i + 1) * 40);
    for (let i = 0; i < 40; i++) {
      for (let j = 0; j <= i; j++) expect(dot(row(i), row(j))).toBeCloseTo(i === j ? 1 : 0, 12);
    }
  });

  test.each(CASE_NAMES)('are asked about %s with balanced pairs', (name) => {
    const { question } = makeToyQuestion(join(folder, name), name, 3);
    expect(question.dataset).toHaveLength(64);
    expect(new Set(question.dataset.map((row) => row.pair)).size).toBe(32);
    expect(question.dataset.filter((row) => row.label === 1)).toHaveLength(32);
  });

  test('have twins with the same weights, shuffled', () => {
    writeToyModel(join(folder, 'model'), 'reads-concept', 1);
    writeRandomTwin(join(folder, 'model'), join(folder, 'twin'), 1);
    const files = ['model', 'twin'].map((name) => openSafetensors(join(folder, name, 'model.safetensors')));
    const [one, other] = files.map((file) => file.float32('model.embed_tokens.weight'));
    expect(other).not.toEqual(one);
    expect(other?.toSorted()).toEqual(one?.toSorted());
    const [norm, otherNorm] = files.map((file) => file.float32('model.norm.weight'));
    expect(otherNorm).toEqual(norm);
    for (const file of files) file.close();
  });
});
