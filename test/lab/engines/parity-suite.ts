/** Tests that an engine computes what transformers computes, for a small random model of every architecture. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Engine, Intervention } from '../../../src/lab/core/engine.ts';
import { parseHookPoint } from '../../../src/lab/core/hook-points.ts';
import { largestDifference, openReference, PARITY_MODELS, type ParityReference } from '../parity-reference.ts';

/** What counts as the same as transformers in float32. */
const CLOSE = 5e-5;

/** `open` opens the model in a folder; the suite closes it. */
export function testParity(engineName: string, open: (folder: string) => Promise<Engine>): void {
  describe.each(PARITY_MODELS)(`${engineName} with the model %s`, (name) => {
    const reference = openReference(name);
    let engine: Engine;
    beforeAll(async () => {
      engine = await open(reference.folder);
    });
    afterAll(() => engine.close());

    it('makes the tokens of transformers', async () => {
      expect(await engine.tokenize([reference.prompt])).toEqual([reference.tokens]);
    });

    it('has the activations and logits of transformers, at all places, layers and positions', async () => {
      const places = ['resid_pre', 'attn_out', 'mlp_out', 'resid_post'];
      const names = Array.from({ length: engine.describe().layers }, (_, layer) => layer)
        .flatMap((layer) => places.map((place) => `blocks.${layer}.hook_${place}`))
        .filter((hook) => !hook.endsWith('resid_pre') || hook.startsWith('blocks.0.'));
      const [result] = await engine.run({
        prompts: [reference.tokens],
        taps: names.map((hook) => ({ point: parseHookPoint(hook), positions: { from: 0 } })),
        logits: { positions: { from: 0 } },
      });
      expect(result?.activations).toHaveLength(names.length);
      names.forEach((hook, i) => {
        const difference = largestDifference(result?.activations[i] ?? [], reference.array(hook));
        expect(difference, hook).toBeLessThan(CLOSE);
      });
      expect(largestDifference(result?.logits ?? [], reference.array('logits'))).toBeLessThan(CLOSE);
    });

    it('has the logits of transformers at the end of a long text', async () => {
      const [result] = await engine.run({ prompts: [reference.longTokens], logits: { positions: [-2, -1] } });
      expect(largestDifference(result?.logits ?? [], reference.array('long'))).toBeLessThan(CLOSE);
    });

    it('has the logits of transformers under every kind of intervention', async () => {
      const results = await engine.run({
        prompts: [reference.tokens],
        variants: interventionsOf(reference).map((intervention) => ({ prompt: 0, interventions: [intervention] })),
        logits: { positions: [-3, -2, -1] },
      });
      expect(results).toHaveLength(reference.interventions.length);
      results.forEach(({ logits }, i) => {
        const difference = largestDifference(logits ?? [], reference.array(`intervention.${i}`));
        expect(difference, JSON.stringify(reference.interventions[i])).toBeLessThan(CLOSE);
      });
    });

    it('generates what transformers generates, steered and not', async () => {
      const { layer, positions, factor, maxNewTokens, plain, steered } = reference.generation;
      const vector = reference.array('vector').map((value) => value * factor);
      const steering: Intervention = { kind: 'add', point: { layer, place: 'resid_post' }, positions, vector };
      const variants = [
        { prompt: 0, interventions: [] },
        { prompt: 0, interventions: [steering] },
      ];
      expect(await engine.generate({ prompts: [reference.tokens], variants, maxNewTokens })).toEqual([plain, steered]);
    });
  });
}

function interventionsOf(reference: ParityReference): Intervention[] {
  const [vector, direction, source] = ['vector', 'direction', 'source'].map(reference.array);
  if (!vector || !direction || !source) throw new Error('The reference lacks its vectors.');
  return reference.interventions.map((described): Intervention => {
    const { layer, place, positions } = described;
    const where = { point: { layer, place }, positions };
    if (described.kind === 'interchange')
      return { ...where, kind: 'interchange', part: described.part, direction, source };
    if (described.kind === 'project-out') return { ...where, kind: 'project-out', direction };
    return { ...where, kind: described.kind, vector };
  });
}
