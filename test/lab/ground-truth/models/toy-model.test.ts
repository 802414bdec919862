import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openSafetensors } from '../../../../src/lab/formats/safetensors.ts';
import { openModelFolder } from '../../../../src/lab/models/open-model.ts';
import { createRandom } from '../../../../src/lab/statistics/random.ts';
import { dot } from '../../../../src/lab/statistics/vectors.ts';
import { FAMILIES, familyOf } from '../families.ts';
import { gather, jitter } from '../family.ts';
import { line } from './circuit.ts';
import { makeLexicon } from './lexicon.ts';
import { randomRotation } from './matrices.ts';
import { writeModelFolder } from './model-folder.ts';
import { buildToy, type ToyDesign } from './toy-model.ts';
import { writeRandomTwin } from './twin.ts';

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'cuvette-toy-test-'));
});

afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

const PLAIN: ToyDesign = {
  shape: 'llama',
  width: 128,
  layers: 2,
  noise: 0.15,
  lexicon: makeLexicon(),
  carries: ({ sign }, random) => ({ concept: sign * jitter(random) }),
  heads: [gather(0)],
  units: line(1, 'concept', 'out', 2),
};

describe('hand-built models', () => {
  test.each([
    ['llama', 'LlamaForCausalLM', 2],
    ['gpt2', 'GPT2LMHeadModel', 8],
    ['gpt-neox', 'GPTNeoXForCausalLM', 8],
  ] as const)(
    'in the shape of %s are folders that open like any model, with a token for each word',
    async (shape, architecture, heads) => {
      writeModelFolder(join(folder, shape), buildToy({ ...PLAIN, shape }, 1).files);
      const model = await openModelFolder(join(folder, shape));
      expect(model.spec).toMatchObject({ architecture, layers: 2, width: 128, heads, vocabulary: 32 });
      const { vocabulary } = PLAIN.lexicon;
      expect(vocabulary).toHaveLength(32);
      expect(model.tokenizer.encode(vocabulary.join(' '))).toEqual(vocabulary.map((_, id) => id));
      model.close();
    },
  );

  test('have as many concept words as asked for, each a token of its own', () => {
    const { concept, vocabulary } = makeLexicon(24);
    expect(concept[1]).toHaveLength(24);
    expect(new Set(vocabulary).size).toBe(vocabulary.length);
  });

  test('are the same for the same seed, and have no axis that means something', () => {
    const [toy, again] = [buildToy(PLAIN, 1), buildToy(PLAIN, 1)];
    expect(again.files).toEqual(toy.files);
    const concept = toy.direction({ concept: 1 });
    expect(dot(concept, concept)).toBeCloseTo(1, 10);
    expect(Math.max(...concept.map(Math.abs))).toBeLessThan(0.5);
    expect(dot(concept, toy.direction({ correlate: 1 }))).toBeCloseTo(0, 10);
  });

  test('are rotated by an orthogonal matrix whose named axes have no mean, which a layer norm would take away', () => {
    const { values } = randomRotation(40, createRandom(1, 'rotation'));
    const row = (i: number) => values.subarray(i * 40, (i + 1) * 40);
    for (let i = 0; i < 40; i++) {
      for (let j = 0; j <= i; j++) expect(dot(row(i), row(j))).toBeCloseTo(i === j ? 1 : 0, 12);
      if (i > 0) expect(row(i).reduce((sum, value) => sum + value, 0)).toBeCloseTo(0, 12);
    }
  });

  test.each(FAMILIES)('are asked about $name with both labels, and pairs of one row each', ({ make }) => {
    const { dataset } = make(3).question;
    const ones = dataset.filter((row) => row.label === 1);
    expect(ones.length).toBeGreaterThanOrEqual(12);
    expect(dataset.length - ones.length).toBeGreaterThanOrEqual(12);
    const paired = ones.filter((row) => row.pair !== undefined);
    expect(new Set(paired.map((row) => row.pair)).size).toBe(paired.length);
  });

  test('have twins with the same weights, shuffled', () => {
    writeModelFolder(join(folder, 'model'), familyOf('causal').make(1).files);
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
