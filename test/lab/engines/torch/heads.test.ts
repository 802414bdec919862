import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runProtocol } from '../../../../src/lab/causality/protocol.ts';
import type { CausalQuestion } from '../../../../src/lab/causality/question.ts';
import type { Engine, ForwardRequest, HookPlace, HookPoint, Intervention } from '../../../../src/lab/core/engine.ts';
import { missing } from '../../../../src/lab/core/missing.ts';
import { neutralPrompts } from '../../../../src/lab/demo/datasets.ts';
import { demoQuestions } from '../../../../src/lab/demo/questions.ts';
import { createEmbeddedEngine } from '../../../../src/lab/engines/embedded/embedded-engine.ts';
import { createLab } from '../../../../src/lab/local/local-lab.ts';
import { openModelFolder } from '../../../../src/lab/models/open-model.ts';
import { measurePatches, type PatchMethod, type PatchPlan } from '../../../../src/lab/patching/patch-effects.ts';
import { createRandom } from '../../../../src/lab/statistics/random.ts';
import { packageFile } from '../../../../src/package-root.ts';
import { temporaryFolder } from '../../../temporary-folder.ts';
import { disagreements, HASH } from '../../ground-truth/agreement.ts';
import { largestDifference, openReference, PARITY_MODELS } from '../../parity-reference.ts';
import { useTorch } from './open-torch-engine.ts';

const CLOSE = 5e-5;
const signal = new AbortController().signal;
const openTorch = useTorch();

describe.each(PARITY_MODELS)('heads and patterns of the model %s', (name) => {
  it('are the same in both engines, as they are and under every kind of intervention', async () => {
    const { folder, tokens } = openReference(name);
    const [embedded, torch] = [await openEmbedded(folder), await openTorch(folder)];
    try {
      expect(torch.describe().headWidth).toBe(embedded.describe().headWidth);
      const request = everything(embedded, tokens);
      const [ours, theirs] = [await torch.run(request), await embedded.run(request)];
      theirs.forEach(({ activations, logits = missing('logits') }, variant) => {
        activations.forEach((numbers, tap) => {
          const difference = largestDifference(ours[variant]?.activations[tap] ?? [], numbers);
          expect(difference, `variant ${variant}, tap ${tap}`).toBeLessThan(CLOSE);
        });
        expect(largestDifference(ours[variant]?.logits ?? [], logits), `variant ${variant}`).toBeLessThan(CLOSE);
      });
    } finally {
      await Promise.all([embedded.close(), torch.close()]);
    }
  });
});

describe('the model that ships', () => {
  let embedded: Engine;
  let torch: Engine;
  beforeAll(async () => {
    const folder = packageFile('models', 'demo');
    [embedded, torch] = [await openEmbedded(folder), await openTorch(folder)];
  });
  afterAll(() => Promise.all([embedded.close(), torch.close()]));

  it('gets the same evidence at the output of a head from both engines', async () => {
    const question: CausalQuestion = {
      ...(await demoQuestion()),
      site: { layer: 2, place: 'z', head: 1, position: -1 },
    };
    const options = { version: '0.0.0', signal, family: 1 };
    const [ours, theirs] = [
      await runProtocol(torch, question, options),
      await runProtocol(embedded, question, options),
    ];
    expect(theirs.direction.vector).toHaveLength(embedded.describe().headWidth ?? 0);
    const evidence = [ours, theirs].map((one) => ({ ...one, model: undefined }));
    expect(disagreements(evidence[0], evidence[1], { ignored: [HASH] })).toEqual([]);
  });

  it.each(['resid_post', 'attn_out', 'z', 'pattern'] as const)(
    'has the same map of patches at %s from both engines, which gradients foretell',
    async (place) => {
      const map = async (engine: Engine, method: PatchMethod) => {
        const plan = { ...(await planFor(engine, place)), method };
        return measurePatches({ engine, signal, advance: () => {} }, plan);
      };
      const [real, same] = [await map(embedded, 'interchange'), await map(torch, 'interchange')];
      expect(largestDifference(same.shares, real.shares)).toBeLessThan(1e-3);
      const estimated = await map(torch, 'attribution');
      expect(estimated.points).toEqual(real.points);
      expect(estimated.gap).toBeCloseTo(real.gap, 3);
      expect(correlation(estimated.shares, real.shares)).toBeGreaterThan(0.8);
    },
  );

  it('shows by patch_map, from gradients alone, the head that interchange finds', async () => {
    const folder = temporaryFolder();
    const { dataset, target } = await demoQuestion();
    const bestOf = async (engine: Engine, method: PatchMethod) => {
      const lab = createLab(engine, { data: folder, cache: folder, project: folder }, undefined);
      const call = (name: string, args: Record<string, unknown>) =>
        lab.call(name, args, { signal, progress: () => {} });
      const { capture_id } = await call('capture_acts', {
        prompts: dataset.map(({ prompt }) => prompt),
        labels: dataset.map(({ label }) => label),
        pair_ids: dataset.map(({ pair }) => pair),
        layers: [2],
      });
      const words = { positive_tokens: target?.positive, negative_tokens: target?.negative };
      const { best } = await call('patch_map', { capture_id, ...words, place: 'z', method, max_pairs: 8, top_k: 1 });
      return best as { layer: string; position: number; share: number }[];
    };
    const [[estimated], [measured]] = [await bestOf(torch, 'attribution'), await bestOf(embedded, 'interchange')];
    expect(measured?.share).toBeGreaterThan(0.5);
    expect(estimated).toMatchObject({ layer: measured?.layer, position: measured?.position });
  });

  async function planFor(engine: Engine, place: HookPlace): Promise<Omit<PatchPlan, 'method'>> {
    const { dataset, target } = await demoQuestion();
    const tokens = await engine.tokenize(dataset.map(({ prompt }) => prompt));
    const rows = [...dataset.keys()];
    const pairs = rows.flatMap((row): [number, number][] => {
      const other = rows.find((one) => dataset[one]?.pair === dataset[row]?.pair && dataset[one]?.label === 0);
      const isFirst = dataset[row]?.label === 1 && other !== undefined;
      return isFirst && tokens[row]?.length === tokens[other]?.length ? [[row, other]] : [];
    });
    const chosen = pairs.slice(0, 6);
    const idsOf = async (words: readonly string[] = []) => (await engine.tokenize(words, { special: false })).flat();
    return {
      prompts: chosen.flat().map((row) => tokens[row] ?? missing('prompt', row)),
      pairs: chosen.map((_, i) => [2 * i, 2 * i + 1] as const),
      place,
      layers: Array.from({ length: engine.describe().layers }, (_, layer) => layer),
      positions: [-3, -2, -1],
      target: { positive: await idsOf(target?.positive), negative: await idsOf(target?.negative) },
    };
  }
});

async function demoQuestion(): Promise<CausalQuestion> {
  const [demo = missing('question')] = demoQuestions(1);
  return {
    site: { layer: demo.layer, place: 'resid_post', position: demo.position },
    direction: { kind: 'fit', method: 'difference-of-means' },
    dataset: demo.dataset,
    target: demo.target,
    neutralPrompts: neutralPrompts(0, 8),
    nulls: 19,
    seed: 1,
  };
}

/** Every head and layer, on prompts of several lengths. */
function everything(engine: Engine, tokens: readonly number[]): ForwardRequest {
  const { layers, heads, headWidth = missing('width of a head') } = engine.describe();
  const prompts = [tokens, tokens.slice(0, 4), tokens.slice(2)];
  const random = (name: string, width: number) => createRandom(1, name).direction(width);
  const points: HookPoint[] = Array.from({ length: layers }, (_, layer) => layer).flatMap((layer) => [
    { layer, place: 'z' },
    ...Array.from({ length: heads }, (_, head) => [
      { layer, place: 'z' as const, head },
      { layer, place: 'pattern' as const, head },
    ]).flat(),
  ]);
  const head = heads - 1;
  const at = { point: { layer: 1, place: 'z' as const, head }, positions: [-2] };
  const [vector, direction, source] = ['a', 'b', 'c'].map((name) => random(name, headWidth));
  if (!vector || !direction || !source) throw new Error('There are no vectors.');
  const weights = (length: number) => Float32Array.from({ length }, (_, i) => (i < 2 ? 0.5 : 0));
  const interventions: Intervention[] = [
    { ...at, kind: 'add', vector },
    { ...at, kind: 'set', vector: new Float32Array(headWidth) },
    { ...at, kind: 'project-out', direction, positions: { from: 1 } },
    { ...at, kind: 'interchange', direction, source, part: 'along' },
    { ...at, kind: 'interchange', direction, source, part: 'rest' },
    { ...at, kind: 'set', point: { layer: 0, place: 'z' }, vector: random('d', heads * headWidth) },
    { kind: 'set', point: { layer: 1, place: 'pattern', head: 0 }, positions: [-1], vector: weights(tokens.length) },
  ];
  return {
    prompts,
    variants: [
      ...prompts.map((_, prompt) => ({ prompt, interventions: [] })),
      ...interventions.map((one) => ({ prompt: 0, interventions: [one] })),
      { prompt: 0, interventions },
      { prompt: 1, interventions: interventions.slice(0, 2) },
    ],
    taps: points.map((point) => ({ point, positions: { from: 0 } })),
    logits: { positions: [-2, -1] },
  };
}

function correlation(a: ArrayLike<number>, b: ArrayLike<number>): number {
  const centred = (values: ArrayLike<number>) => {
    const mean = Array.from(values).reduce((sum, value) => sum + value, 0) / values.length;
    return Array.from(values, (value) => value - mean);
  };
  const product = (x: number[], y: number[]) => x.reduce((sum, value, i) => sum + value * (y[i] ?? 0), 0);
  const [x, y] = [centred(a), centred(b)];
  return product(x, y) / Math.sqrt(product(x, x) * product(y, y));
}

async function openEmbedded(folder: string): Promise<Engine> {
  const model = await openModelFolder(folder);
  return createEmbeddedEngine({ model, id: folder, threads: 1 }).finally(() => model.close());
}
