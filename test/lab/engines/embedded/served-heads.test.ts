import { describe, expect, it, onTestFinished } from 'vitest';
import { demoQuestions } from '../../../../src/lab/demo/questions.ts';
import { createEmbeddedEngine } from '../../../../src/lab/engines/embedded/embedded-engine.ts';
import { createLab } from '../../../../src/lab/local/local-lab.ts';
import { openModelFolder } from '../../../../src/lab/models/open-model.ts';
import { createRemoteLab } from '../../../../src/lab/remote/remote-lab.ts';
import { packageFile } from '../../../../src/package-root.ts';
import { temporaryFolder } from '../../../temporary-folder.ts';
import { serveLab, TOKEN } from '../../served.ts';

const [QUESTION] = demoQuestions(0);

describe('a lab over HTTP', () => {
  it('captures, probes, steers, maps and tests heads as the same lab does at hand', async () => {
    const { remote, local } = await openLabs();
    const rows = QUESTION?.dataset ?? [];
    const point = 'blocks.1.attn.hook_z[0]';
    const asked = {
      prompts: rows.map(({ prompt }) => prompt),
      labels: rows.map(({ label }) => label),
      pair_ids: rows.map(({ pair }) => pair),
      layers: [point],
    };
    const { capture_id, width, manifest_sha256 } = await remote('capture_acts', asked);
    expect(await remote('colab_status', {})).toMatchObject({ heads: 4, d_head: width });
    expect((await local('capture_acts', asked)).manifest_sha256).toBe(manifest_sha256);

    await remote('train_probe', { probe_id: 'head', capture_id, layer: point });
    const steered = { prompt: rows[0]?.prompt, layer: point, direction_id: 'head', alpha: 3, alpha_unit: 'swing' };
    expect(await remote('steer', { ...steered, max_new_tokens: 2 })).toMatchObject({ layer: point });
    await expect(remote('steer', { ...steered, layer: 1 })).rejects.toThrow('is of another model or place');

    const target = { positive_tokens: QUESTION?.target.positive, negative_tokens: QUESTION?.target.negative };
    const map = { capture_id, ...target, place: 'z', method: 'interchange', positions: [-1], max_pairs: 4 };
    const mapped = await remote('patch_map', map);
    expect(mapped).toEqual(await local('patch_map', map));
    expect(String(mapped.picture)).toContain('heads across');
    await expect(remote('patch_map', { ...map, method: 'attribution' })).rejects.toThrow('--engine torch');
    await expect(remote('patch_map', { ...map, place: 'pattern', method: 'zero' })).rejects.toThrow('sums to 1');

    const [best] = mapped.best as { layer: string; position: number }[];
    const verdict = await remote('causality_protocol', {
      ...{ capture_id, ...target, fit: 'difference-of-means', nulls: 59, include_evidence: true },
      ...{ layer: best?.layer, position: best?.position },
    });
    expect(verdict.verdict).toEqual(expect.any(String));
    const { evidence } = verdict.record as { evidence: { site: object; direction: { vector: number[] } } };
    expect(evidence.direction.vector).toHaveLength(Number(width));
    expect(evidence.site).toMatchObject({ place: 'z', head: expect.any(Number) });
    await expect(
      remote('causality_protocol', { capture_id, fit: 'logistic', layer: 'blocks.1.attn.hook_pattern[0]' }),
    ).rejects.toThrow('has no directions');
  }, 600_000);

  it('captures patterns, each row as long as the longest prompt, and refuses them beside what is of another width', async () => {
    const { remote } = await openLabs();
    const prompts = ['Report: The old keys', 'Report: The old key near the cabinet'];
    const pattern = 'blocks.0.attn.hook_pattern[1]';
    const answer = await remote('capture_acts', { prompts, layers: [pattern], positions: [-1, 0] });
    expect(answer).toMatchObject({ layers: [pattern], n_prompts: 2 });
    expect(Number(answer.width)).toBeGreaterThan(5);
    await expect(remote('capture_acts', { prompts, layers: [pattern, 1] })).rejects.toThrow('Capture them apart');
  });
});

type Call = (name: string, args: Record<string, unknown>) => Promise<Record<string, unknown>>;

/** The same lab, with the model that ships: over HTTP, and at hand. */
async function openLabs(): Promise<{ remote: Call; local: Call }> {
  const model = await openModelFolder(packageFile('models', 'demo'));
  const engine = await createEmbeddedEngine({ model, id: 'demo' }).finally(() => model.close());
  const folder = temporaryFolder();
  const lab = createLab(engine, { data: folder, cache: folder, project: folder }, undefined);
  onTestFinished(() => lab.close());
  const { url } = await serveLab(lab);
  const remote = createRemoteLab({ endpoint: url, token: TOKEN });
  onTestFinished(() => remote.close());
  const context = { signal: new AbortController().signal, progress: () => {} };
  return {
    remote: (name, args) => remote.call(name, args, context),
    local: (name, args) => lab.call(name, args, context),
  };
}
