import { describe, expect, test } from 'vitest';
import type { AttributionRequest } from '../../../src/lab/core/engine.ts';
import { createToyEngine, toyPairs } from '../toy-engine.ts';
import { toyLab } from '../toy-lab.ts';

const target = { positive_tokens: ['are'], negative_tokens: ['is'] };

interface Answer {
  best: { layer: number | string; position: number; share: number }[];
  map: { rows: (number | string)[]; positions: number[]; tokens: string[]; shares: number[][] };
  picture: string;
  notes: string[];
  n_pairs: number;
}

async function mapped(args: Record<string, unknown>, engine = createToyEngine()) {
  const lab = toyLab(undefined, engine);
  const capture_id = await lab.capturePairs(16);
  const answer = await lab.call('patch_map', { capture_id, ...target, ...args });
  return { ...lab, capture_id, answer: answer as unknown as Answer };
}

/** What the map has at a layer and position. */
function shareAt({ map }: Answer, row: number | string, position: number): number | undefined {
  return map.shares[map.rows.indexOf(row)]?.[map.positions.indexOf(position)];
}

describe('a map of patches', () => {
  test('finds the subject before block 0 has copied its number, and the last word after', async () => {
    const { answer } = await mapped({ method: 'interchange', place: 'resid_pre' });
    // The toy reads the number of the third word, copies it in block 0 to all later ones, and says it after the last.
    expect(shareAt(answer, 'blocks.0.hook_resid_pre', -3)).toBeCloseTo(1, 4);
    expect(shareAt(answer, 'blocks.0.hook_resid_pre', -1)).toBeCloseTo(0, 4);
    expect(shareAt(answer, 'blocks.1.hook_resid_pre', -3)).toBeCloseTo(0, 4);
    expect(shareAt(answer, 'blocks.1.hook_resid_pre', -1)).toBeCloseTo(1, 4);
    expect(answer.map.tokens).toHaveLength(answer.map.positions.length);
    expect(answer.best[0]?.share).toBeCloseTo(1, 3);
  });

  test('tells by ablation what the answer needs: zeros and the mean of both classes remove the difference', async () => {
    for (const method of ['zero', 'mean']) {
      const { answer } = await mapped({ method, place: 'attn_out' });
      expect(shareAt(answer, 'blocks.0.hook_attn_out', -1), method).toBeCloseTo(1, 1);
      expect(Math.abs(shareAt(answer, 'blocks.1.hook_attn_out', -1) ?? 1), method).toBeLessThan(0.01);
    }
  });

  test('is drawn, and its best sites are arguments of the protocol', async () => {
    const { answer, call, capture_id } = await mapped({ method: 'interchange', layers: [0] });
    expect(answer.picture).toMatch(/^interchange at resid_post: layers down, positions across\n/);
    expect(answer.picture.split('\n')).toHaveLength(4);
    expect(answer.picture).toContain('█ = 1.00');
    expect(answer.notes).toEqual(['1 of 2 layers were asked for.']);
    const [best] = answer.best;
    const { record } = (await call('causality_protocol', {
      ...{ capture_id, ...target, fit: 'difference-of-means', include_evidence: true },
      ...{ layer: best?.layer, position: best?.position },
    })) as unknown as { record: { evidence: { site: object; interchange: { full: { value: number } } } } };
    expect(record.evidence.site).toMatchObject({ layer: 0, position: best?.position });
    expect(record.evidence.interchange.full.value).toBeCloseTo(best?.share ?? 0, 1);
  });

  test('is made of the half of the data that the protocol does not test on', async () => {
    const { engine, capture_id, call } = await mapped({ method: 'interchange' });
    const prompts = new Set(
      engine.requests.flatMap((request) => (request.variants ? request.prompts.map(String) : [])),
    );
    const { record } = (await call('causality_protocol', {
      ...{ capture_id, ...target, fit: 'difference-of-means', layer: 0, include_evidence: true },
    })) as unknown as { record: { evidence: { split: { test: number[] } } } };
    const all = await engine.tokenize(toyPairs(16).prompts);
    expect(record.evidence.split.test.filter((row) => prompts.has(String(all[row])))).toEqual([]);
    expect(prompts.size).toBeGreaterThan(10);
  });

  test('by gradients is refused by an engine that has none, with the one that does', async () => {
    await expect(mapped({})).rejects.toThrow(/embedded engine computes no gradients.*--engine torch.*interchange/);
  });

  test('by gradients is what the engine gives, and says that it is an estimate', async () => {
    const asked: AttributionRequest[] = [];
    const engine = createToyEngine();
    engine.attribute = async (request) => {
      asked.push(request);
      const { pairs, positions } = request;
      const margins = Float32Array.from({ length: 2 * pairs.length }, (_, row) => (row % 2 === 0 ? 2 : -2));
      const changes = new Float32Array(2 * pairs.length * 2 * positions.length);
      // At the last position of layer 1, a prompt's margin would change by 3 towards the other's.
      for (let row = 0; row < 2 * pairs.length; row++)
        changes[(row * 2 + 1) * positions.length + 4] = row % 2 === 0 ? -3 : 3;
      return { margins, changes };
    };
    const { answer } = await mapped({}, engine);
    expect(asked[0]).toMatchObject({ place: 'resid_post', positions: [-5, -4, -3, -2, -1] });
    expect(answer.best[0]).toEqual({ layer: 1, position: -1, share: 0.75 });
    expect(answer.notes[0]).toContain('first-order estimates');
  });

  test('wants pairs, and positions that every prompt has', async () => {
    const { call } = toyLab();
    const { prompts, labels } = toyPairs(16);
    const { capture_id } = await call('capture_acts', { prompts, labels, layers: [0] });
    await expect(call('patch_map', { capture_id, method: 'zero' })).rejects.toThrow('has no counterfactual pairs');
    await expect(mapped({ method: 'zero', positions: [-9] })).rejects.toThrow('Position -9 is outside');
  });

  test('of heads is refused where they cannot be told apart', async () => {
    await expect(mapped({ method: 'interchange', place: 'z' })).rejects.toThrow('cannot be told apart');
  });
});
