/** Answers `colab_status`, `list_probes` and `list_manifests`. */

import { VERSION } from '../../version.ts';
import { PROTOCOL } from '../core/lab.ts';
import { listManifests, listProbes, status } from '../primitives/lab-status.ts';
import { defineHandler } from './handler.ts';
import { showProbe } from './show-probe.ts';

export const statusHandler = defineHandler(status, async ({ model, store }) => {
  const [probes, captures, family] = await Promise.all([
    store.probes.list(),
    store.captures.ids(),
    store.family.state(),
  ]);
  return {
    ok: true,
    version: VERSION,
    protocol: PROTOCOL,
    model_id: model.id,
    device: model.device,
    dtype: model.dtype,
    engine: model.engine,
    architecture: model.architecture,
    layers: model.layers,
    d_model: model.width,
    heads: model.heads,
    ...(model.headWidth !== undefined && { d_head: model.headWidth }),
    vocabulary: model.vocabulary,
    context: model.context,
    parameters: model.parameters,
    weights_sha256: model.weights,
    tokenizer_sha256: model.tokenizer,
    probes_loaded: probes.length,
    captures_in_memory: captures.length,
    family: family.size,
    error_spent: family.spent,
  };
});

export const listProbesHandler = defineHandler(listProbes, async ({ model, store }) => ({
  model_id: model.id,
  probes: (await store.probes.list()).map(showProbe),
}));

export const listManifestsHandler = defineHandler(listManifests, async ({ store }, { limit }) => ({
  manifests: await store.manifests.latest(limit),
}));
