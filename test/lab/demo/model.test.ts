import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { decide } from '../../../src/lab/causality/decide.ts';
import { runProtocol } from '../../../src/lab/causality/protocol.ts';
import type { DatasetRow } from '../../../src/lab/causality/question.ts';
import type { Engine } from '../../../src/lab/core/engine.ts';
import {
  agreementPairs,
  attractedPairs,
  flagPairs,
  inventedPairs,
  neutralPrompts,
  reviewPairs,
} from '../../../src/lab/demo/datasets.ts';
import { demoQuestions } from '../../../src/lab/demo/questions.ts';
import { vocabulary } from '../../../src/lab/demo/vocabulary.ts';
import { createEmbeddedEngine } from '../../../src/lab/engines/embedded/embedded-engine.ts';
import { openModelFolder } from '../../../src/lab/models/open-model.ts';
import { checkSae } from '../../../src/lab/sae/fit.ts';
import { openSae } from '../../../src/lab/sae/open-sae.ts';
import { differenceOfMeans } from '../../../src/lab/statistics/difference-of-means.ts';
import { packageFile } from '../../../src/package-root.ts';

const FOLDER = packageFile('models', 'demo');
const { signal } = new AbortController();
let engine: Engine;

beforeAll(async () => {
  const model = await openModelFolder(FOLDER);
  engine = await createEmbeddedEngine({ model, id: 'demo' }).finally(() => model.close());
});
afterAll(() => engine.close());

describe('the tokenizer of the shipped model', () => {
  it('has one token for every word of the language', async () => {
    const tokens = await engine.tokenize(vocabulary(), { special: false });
    expect(tokens.filter((list) => list.length !== 1)).toEqual([]);
    expect(new Set(tokens.flat()).size).toBe(tokens.length);
  });

  it.each([
    '',
    'Any English at all, even “quotes”!',
    'naïve\n\ttabs  and  spaces',
    '日本語 🧪',
    'The keys<|endoftext|>are',
  ])('gives back the text %j', async (text) => {
    const [tokens = []] = await engine.tokenize([text], { special: false });
    expect(await engine.detokenize(tokens, { special: true })).toBe(text);
  });

  it('begins a prompt with the end token', async () => {
    expect((await engine.tokenize(['The keys']))[0]).toEqual([
      0,
      ...((await engine.tokenize(['The keys'], { special: false }))[0] ?? []),
    ]);
  });
});

describe('the shipped model', () => {
  const NUMBER = [[' are'], [' is']] as const;
  it.each([
    ['agrees with subjects over nouns it never saw them with', agreementPairs(31, 200), NUMBER, 0.97],
    ['agrees with subjects over a noun of the other number', attractedPairs(31, 200), NUMBER, 0.97],
    ['agrees with nouns that it has never seen', inventedPairs(31, 200), NUMBER, 0.9],
    [
      'keeps to the tense of the text',
      flagPairs(31, 200),
      [
        [' is', ' are'],
        [' was', ' were'],
      ],
      0.97,
    ],
    ['ends reviews with the right verdict', reviewPairs(31, 200), [[' good'], [' bad']], 0.95],
  ] as const)('%s', async (_, rows, [positive, negative], least) => {
    expect(await accuracy(rows, positive, negative)).toBeGreaterThanOrEqual(least);
  });

  it('writes whole sentences that agree', async () => {
    const prompts = await engine.tokenize(['Report: The keys near the cabinet', 'Story: The key near the cabinets']);
    const generated = await engine.generate({ prompts, maxNewTokens: 24 });
    const texts = await Promise.all(generated.map((tokens) => engine.detokenize(tokens)));
    expect(texts[0]).toMatch(/^ (are|\w+[^s]) .*\.$/);
    expect(texts[1]).toMatch(/^ was .*\.$/);
  });
});

describe('the sparse autoencoder of the shipped model', () => {
  it('reconstructs activations of texts with few features', async () => {
    const sae = await openSae(join(FOLDER, 'sae'), { id: 'demo' });
    const point = sae.hookPoint;
    if (point === undefined) throw new Error('The SAE says not where it is from.');
    const { width, layers } = engine.describe();
    const prompts = await engine.tokenize(agreementPairs(32, 100).map((row) => row.prompt));
    const results = await engine.run({ prompts, taps: [{ point, positions: { from: 0 } }] });
    const rows = Float32Array.from(results.flatMap(({ activations }) => [...(activations[0] ?? [])]));
    const fit = checkSae(sae, { id: 'demo', width, layers }, rows, { features: await engine.encodeSae(sae, rows) });
    expect(fit.fvu).toBeLessThan(0.2);
    expect(fit.l0).toBeLessThan(16);
    expect(sae.descriptions?.size).toBeGreaterThan(sae.features / 2);
  });
});

describe('the protocol on a direction of the demo gives', () => {
  it.each(demoQuestions(1))('$name: $expected', async ({ layer, position, training, expected, ...asked }) => {
    const site = { layer, place: 'resid_post', position } as const;
    const prompts = await engine.tokenize(training.map((row) => row.prompt));
    const results = await engine.run({ prompts, taps: [{ point: site, positions: [position] }] });
    const rows = Float32Array.from(results.flatMap(({ activations }) => [...(activations[0] ?? [])]));
    const vector = Array.from(
      differenceOfMeans(
        rows,
        training.map((row) => row.label),
      ),
    );
    const evidence = await runProtocol(
      engine,
      { ...asked, site, direction: { kind: 'given', vector }, neutralPrompts: neutralPrompts(1, 24), seed: 1 },
      { signal, family: 3, version: 'test' },
    );
    expect(evidence.decodability.auroc).toBeGreaterThan(0.9);
    expect(decide(evidence)).toMatchObject({ verdict: expected });
  });
});

async function accuracy(
  rows: readonly DatasetRow[],
  positive: readonly string[],
  negative: readonly string[],
): Promise<number> {
  const prompts = await engine.tokenize(rows.map((row) => row.prompt));
  const tokens = (await engine.tokenize([...positive, ...negative], { special: false })).flat();
  const results = await engine.run({ prompts, logits: { positions: [-1], tokens } });
  const right = rows.filter((row, i) => {
    const logits = [...(results[i]?.logits ?? [])];
    const sum = (some: number[]) => some.reduce((total, logit) => total + logit, 0) / some.length;
    const margin = sum(logits.slice(0, positive.length)) - sum(logits.slice(positive.length));
    return margin > 0 === (row.label === 1);
  });
  return right.length / rows.length;
}

it('the shipped model has its card and its settings', () => {
  for (const file of [
    'README.md',
    'config.json',
    'model.safetensors',
    'tokenizer.json',
    'tokenizer_config.json',
    'sae/cfg.json',
  ]) {
    expect(existsSync(join(FOLDER, file)), file).toBe(true);
  }
});
