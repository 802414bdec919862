import { describe, expect, it } from 'vitest';
import type { ForwardRequest, Intervention } from '../../../../src/lab/core/engine.ts';
import { PARITY_MODELS } from '../../parity-reference.ts';
import { openEngine, randomPrompts, randomVector } from './open-engine.ts';

/** On both sides of the windows of the models, of 5 to 7 tokens, and of the original context of 18 tokens of the one with longrope. */
const LENGTHS = [1, 5, 6, 7, 8, 17, 18, 19, 33];

describe.each(PARITY_MODELS)('the embedded engine with the model %s', (name) => {
  it('computes the same bits for a prompt alone and in any batch', async () => {
    const alone = await openEngine(name);
    const together = await openEngine(name);
    const prompts = randomPrompts(alone, LENGTHS);
    const layers = Array.from({ length: alone.describe().layers }, (_, layer) => layer);
    const request = (prompts: number[][]): ForwardRequest => ({
      prompts,
      taps: layers.map((layer) => ({ point: { layer, place: 'resid_post' }, positions: { from: 0 } })),
      logits: { positions: { from: 0 } },
      surprise: true,
    });
    const expected = [];
    for (const prompt of prompts) expected.push(...(await alone.run(request([prompt]))));
    expect(await together.run(request(prompts))).toEqual(expected);
  });

  it('generates the same tokens for a prompt alone and in any batch, steered and not', async () => {
    const alone = await openEngine(name);
    const together = await openEngine(name);
    const prompts = randomPrompts(alone, [3, 6, 12, 15, 19]);
    const vector = randomVector(alone, 3, 10);
    const steer: Intervention = {
      kind: 'add',
      point: { layer: 1, place: 'resid_pre' },
      positions: { from: 2 },
      vector,
    };
    const variants = prompts.flatMap((_, prompt) => [[], [steer]].map((interventions) => ({ prompt, interventions })));
    const generated = await together.generate({ prompts, variants, maxNewTokens: 8 });
    for (const [i, variant] of variants.entries()) {
      expect(await alone.generate({ prompts, variants: [variant], maxNewTokens: 8 })).toEqual([generated[i]]);
    }
  });
});
