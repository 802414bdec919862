import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { decide } from '../../../../src/lab/causality/decide.ts';
import type { Evidence } from '../../../../src/lab/causality/evidence.ts';
import { runProtocol } from '../../../../src/lab/causality/protocol.ts';
import type { CausalQuestion } from '../../../../src/lab/causality/question.ts';
import type { Engine, ForwardRequest, Intervention, VariantResult } from '../../../../src/lab/core/engine.ts';
import { neutralPrompts } from '../../../../src/lab/demo/datasets.ts';
import { demoQuestions } from '../../../../src/lab/demo/questions.ts';
import { createEmbeddedEngine } from '../../../../src/lab/engines/embedded/embedded-engine.ts';
import { openModelFolder } from '../../../../src/lab/models/open-model.ts';
import { openSae } from '../../../../src/lab/sae/open-sae.ts';
import { createRandom } from '../../../../src/lab/statistics/random.ts';
import { packageFile } from '../../../../src/package-root.ts';
import { allOnCi } from '../../../sample.ts';
import { CLOSE, disagreements, HASH } from '../../ground-truth/agreement.ts';
import { FIRST_FAMILIES } from '../../ground-truth/families/first.ts';
import { familyOf } from '../../ground-truth/families.ts';
import { askEngine, runFamily } from '../../ground-truth/suite.ts';
import { largestDifference } from '../../parity-reference.ts';
import { useTorch } from './open-torch-engine.ts';

const DEMO = packageFile('models', 'demo');
const SEED = 1;

const openTorch = useTorch();
const options = { version: '0.0.0', signal: new AbortController().signal, family: 1 };

describe('the model that ships, in both engines', () => {
  let embedded: Engine;
  let torch: Engine;
  beforeAll(async () => {
    embedded = await openEmbedded(DEMO);
    torch = await openTorch(DEMO);
  });
  afterAll(() => Promise.all([embedded.close(), torch.close()]));

  it('is the same model', () => {
    const { engine, ...description } = embedded.describe();
    expect(torch.describe()).toEqual({ ...description, engine: 'torch' });
  });

  it('has the same tokens, and the same text for them', async () => {
    const texts = demoQuestions(1).flatMap(({ dataset }) => dataset.map(({ prompt }) => prompt));
    const tokens = await embedded.tokenize(texts);
    expect(await torch.tokenize(texts)).toEqual(tokens);
    expect(await torch.tokenize(texts, { special: false })).toEqual(await embedded.tokenize(texts, { special: false }));
    for (const some of tokens.slice(0, 5)) {
      expect(await torch.detokenize(some)).toBe(await embedded.detokenize(some));
      expect(await torch.detokenize(some, { special: true })).toBe(await embedded.detokenize(some, { special: true }));
    }
  });

  it('has the same activations, logits and surprise, unmodified and under interventions', async () => {
    const request = await everything(embedded);
    const [ours, theirs] = [await torch.run(request), await embedded.run(request)];
    expect(ours).toHaveLength(theirs.length);
    ours.forEach((result, i) => {
      numbersOf(result).forEach((numbers, which) => {
        const difference = largestDifference(numbers, numbersOf(theirs[i])[which] ?? []);
        expect(difference, `variant ${i}, ${which}`).toBeLessThan(CLOSE);
      });
    });
  });

  it('generates the same text, greedily and by sampling', async () => {
    const prompts = await embedded.tokenize(
      demoQuestions(1).flatMap(({ dataset }) => dataset.slice(0, 3).map((row) => row.prompt)),
    );
    for (const temperature of [0, 1]) {
      const request = { prompts, maxNewTokens: 12, temperature, seed: 5 };
      expect(await torch.generate(request)).toEqual(await embedded.generate(request));
    }
  });

  it('has the same features of its SAE', async () => {
    const sae = await openSae(join(DEMO, 'sae'), { id: 'demo', signal: options.signal });
    const { width } = embedded.describe();
    const rows = Float32Array.from(
      { length: 50 * width },
      (
        (random) => () =>
          random.normal()
      )(createRandom(1, 'rows')),
    );
    expect(largestDifference(await torch.encodeSae(sae, rows), await embedded.encodeSae(sae, rows))).toBeLessThan(
      CLOSE,
    );
    expect(
      largestDifference(
        await torch.encodeSae(sae, rows.subarray(width)),
        await embedded.encodeSae(sae, rows.subarray(width)),
      ),
    ).toBeLessThan(CLOSE);
  });

  it.each(demoQuestions(1))('gets the same verdict on $name', async (demo) => {
    const question: CausalQuestion = {
      site: { layer: demo.layer, place: 'resid_post', position: demo.position },
      direction: { kind: 'fit', method: 'difference-of-means' },
      dataset: demo.dataset,
      target: demo.target,
      neutralPrompts: neutralPrompts(0, 24),
      seed: 1,
    };
    expectSame(await runProtocol(torch, question, options), await runProtocol(embedded, question, options));
  });

  it('gets the same verdict on a subspace that each engine fits on interchange by itself', async () => {
    const [demo] = demoQuestions(1);
    if (!demo) throw new Error('There is no question about the model that ships.');
    const question: CausalQuestion = {
      site: { layer: demo.layer, place: 'resid_post', position: demo.position },
      direction: { kind: 'fit', method: 'interchange', rank: 2 },
      dataset: demo.dataset,
      target: demo.target,
      neutralPrompts: neutralPrompts(0, 24),
      seed: 1,
    };
    const [ours, theirs] = [
      await runProtocol(torch, question, options),
      await runProtocol(embedded, question, options),
    ];
    expect(decide(theirs)).toMatchObject({ verdict: 'causal' });
    expect(decide(ours)).toMatchObject({ verdict: 'causal' });
    expect(ours.interchange.value).toBeCloseTo(theirs.interchange.value, 2);
  });
});

describe('models of known causal structure', () => {
  const families = [...['gpt2', 'key at a word', 'gpt-neox', 'query'].map(familyOf), ...FIRST_FAMILIES];
  it.each(allOnCi(families, 2))('get the same verdict on $name from both engines', async (family) => {
    const theirs = await runFamily(family, SEED, askEngine(openEmbedded, options));
    const ours = await runFamily(family, SEED, askEngine(openTorch, options));
    expectSame(ours.evidence, theirs.evidence);
  });
});

async function openEmbedded(folder: string): Promise<Engine> {
  const model = await openModelFolder(folder);
  return createEmbeddedEngine({ model, id: folder, threads: 1 }).finally(() => model.close());
}

/** The same verdict for the same reason, and every number of the evidence within reach of the other. */
function expectSame(ours: Evidence, theirs: Evidence): void {
  const { verdict, reason } = decide(theirs);
  expect(decide(ours)).toMatchObject({ verdict, reason });
  const evidence = [ours, theirs].map((one) => ({ ...one, model: undefined }));
  expect(disagreements(evidence[0], evidence[1], { ignored: [HASH] })).toEqual([]);
}

/** Every place and kind of intervention, on prompts of several lengths, and everything that can be read. */
async function everything(engine: Engine): Promise<ForwardRequest> {
  const { width, layers } = engine.describe();
  const prompts = await engine.tokenize(
    demoQuestions(1).flatMap(({ dataset }) => dataset.slice(0, 4).map((row) => row.prompt)),
  );
  const [vector, direction, source] = ['vector', 'direction', 'source'].map((name) =>
    createRandom(1, name)
      .direction(width)
      .map((value) => 5 * value),
  );
  if (!vector || !direction || !source) throw new Error('There are no vectors.');
  const places = ['resid_pre', 'attn_out', 'mlp_out', 'resid_post'] as const;
  const variants = places.flatMap((place, i) => {
    const where = { point: { layer: (i + 1) % layers, place }, positions: i % 2 ? [-1 - i] : { from: 2 } };
    const interventions: Intervention[] = [
      { ...where, kind: 'add', vector },
      { ...where, kind: 'set', vector },
      { ...where, kind: 'project-out', direction },
      { ...where, kind: 'interchange', direction, source, part: 'along' },
      { ...where, kind: 'interchange', direction, source, part: 'rest' },
    ];
    return interventions.map((one, j) => ({ prompt: (i + j) % prompts.length, interventions: [one] }));
  });
  return {
    prompts,
    variants: [...prompts.map((_, prompt) => ({ prompt, interventions: [] })), ...variants],
    taps: Array.from({ length: layers }, (_, layer) => layer).flatMap((layer) =>
      places.map((place) => ({ point: { layer, place }, positions: { from: 0 } })),
    ),
    logits: { positions: [1, -1] },
    surprise: true,
  };
}

function numbersOf(result?: VariantResult): Float32Array[] {
  const { activations = [], logits, surprise } = result ?? {};
  const { logProbabilities, divergences } = surprise ?? {};
  return [...activations, ...[logits, logProbabilities, divergences].filter((numbers) => numbers !== undefined)];
}
