/** Tests models in 8 and 4 bit, by bitsandbytes, on the CPU. */

import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { decide } from '../../../../src/lab/causality/decide.ts';
import { runProtocol } from '../../../../src/lab/causality/protocol.ts';
import type { Engine } from '../../../../src/lab/core/engine.ts';
import { neutralPrompts } from '../../../../src/lab/demo/datasets.ts';
import { demoQuestions } from '../../../../src/lab/demo/questions.ts';
import { dot, norm } from '../../../../src/lab/statistics/vectors.ts';
import { packageFile } from '../../../../src/package-root.ts';
import { evaluate } from './evaluate.ts';
import { useTorch } from './open-torch-engine.ts';

const DEMO = packageFile('models', 'demo');

const openTorch = useTorch();
const [question] = demoQuestions(1);
if (!question) throw new Error('The demo has no questions.');
const prompts = question.dataset.map(({ prompt }) => prompt);

const python = inject('richTorchPython');
let whole: Engine;
beforeAll(async () => {
  whole = await openTorch(DEMO);
});
afterAll(() => whole?.close());

describe.skipIf(python === null).each([
  ['8bit', 'Linear8bitLt', 0.999],
  ['4bit', 'Linear4bit', 0.98],
] as const)('a model in %s', (quantization, layer, likeness) => {
  let engine: Awaited<ReturnType<typeof openTorch>>;
  beforeAll(async () => {
    engine = await openTorch(DEMO, { ...(python && { python }), quantization });
  });
  afterAll(() => engine?.close());

  it('says so, and has its blocks found', async () => {
    expect(engine.describe()).toMatchObject({ ...whole.describe(), dtype: `${quantization}, float32` });
    expect(await evaluate(engine, 'type(model.model.layers[0].mlp.up_proj).__name__')).toBe(`'${layer}'`);
  });

  it('has activations and logits like those of the whole model, and not the same', async () => {
    const tokens = await whole.tokenize(prompts.slice(0, 8));
    const request = {
      prompts: tokens,
      taps: [{ point: { layer: 2, place: 'resid_post' as const }, positions: [-1] }],
      logits: { positions: [-1] },
    };
    const [ours, theirs] = [await engine.run(request), await whole.run(request)];
    ours.forEach(({ activations: [found], logits }, i) => {
      const { activations: [expected] = [], logits: expectedLogits } = theirs[i] ?? {};
      for (const [one, other] of [
        [found, expected],
        [logits, expectedLogits],
      ]) {
        const alike = likenessOf(one ?? new Float32Array(), other ?? new Float32Array());
        expect(alike).toBeGreaterThan(likeness);
        expect(alike).toBeLessThan(1);
      }
    });
  });

  it('gets the verdict of the whole model', async () => {
    const asked = {
      site: { layer: question.layer, place: 'resid_post' as const, position: question.position },
      direction: { kind: 'fit' as const, method: 'difference-of-means' as const },
      dataset: question.dataset,
      target: question.target,
      neutralPrompts: neutralPrompts(0, 24),
      seed: 1,
    };
    const signal = new AbortController().signal;
    const evidence = await runProtocol(engine, asked, { version: '0.0.0', signal, family: 1 });
    expect(decide(evidence)).toMatchObject({ verdict: 'causal', reason: 'sufficient-and-necessary' });
  });
});

/** The cosine between two vectors. */
function likenessOf(one: Float32Array, other: Float32Array): number {
  return dot(one, other) / (norm(one) * norm(other));
}
