/** Answers `sae_lookup`: encodes a capture's rows into SAE features, after checking that the SAE fits the model at that hook point. */

import { PLAIN_SENTENCES } from '../causality/neutral-text.ts';
import type { HookPoint } from '../core/engine.ts';
import { formatHookPoint } from '../core/hook-points.ts';
import type { LabContext } from '../core/lab.ts';
import { hashOf, hashOfNumbers } from '../core/manifest.ts';
import { missing } from '../core/missing.ts';
import type { Sae } from '../core/sae.ts';
import { saeLookup } from '../primitives/sae-lookup.ts';
import { strongestFeatures } from '../sae/features.ts';
import { checkSae, checkSaeShape, type SaeFit } from '../sae/fit.ts';
import { defineHandler } from './handler.ts';
import { type Layer, layerOf } from './layers.ts';
import { tokenizePrompts } from './prompts.ts';
import { type LabResources, recorded } from './resources.ts';
import { positionIn } from './rows.ts';

/** Features in memory at a time. */
const MOST_FEATURES = 1 << 24;

export const saeLookupHandler = defineHandler(saeLookup, async (resources, args, context) => {
  const capture = await resources.store.captures.get(args.capture_id);
  const layer = layerOf(resources, args.layer);
  const position = positionIn(capture, args.position);
  const rows = capture.rows(layer.name, position);
  const sae = await resources.openSae(args.sae_id, context);
  const notes = [...(sae.notes ?? [])];
  const check = await checkFit(resources, sae, layer, args.force, notes, context);

  const { fit, strongest, ofRows } = await encode(resources, sae, rows, args, context);
  const result = {
    d_sae: sae.features,
    n_rows: capture.prompts.length,
    top_features: strongest,
    l0: fit.l0,
    fvu: finite(fit.fvu),
    fit_check: { n_tokens: check.rows, l0: check.l0, fvu: finite(check.fvu) },
  };
  const manifest = await recorded(resources, {
    tool: saeLookup.name,
    inputs: { sae: hashOfNumbers(sae.encoder), capture_id: capture.id, point: layer.name, position, top_k: args.top_k },
    outputs: result,
    data: hashOf(capture.data),
  });
  return { sae_id: args.sae_id, format: sae.format, ...result, rows: ofRows, notes, manifest_sha256: manifest };
});

/** Measures the fit on neutral text. The first token is left out: in many models its activation is an outlier. */
async function checkFit(
  resources: LabResources,
  sae: Sae,
  { point, name }: Layer,
  isForced: boolean,
  notes: string[],
  { signal }: LabContext,
): Promise<SaeFit> {
  checkSaeShape(sae, resources.model);
  const said = sae.hookPoint && formatHookPoint(sae.hookPoint);
  if (said !== undefined && said !== name) notes.push(`The SAE says that it is of ${said}, and this is ${name}.`);
  if (sae.output) notes.push('This is a transcoder: its features are those of its input here.');
  const rows = await readText(resources, point, signal);
  const features = await resources.engine.encodeSae(sae, rows, signal);
  if (isForced) notes.push('It was used without regard to how well it fits.');
  return checkSae(sae, resources.model, rows, { features, force: isForced });
}

async function readText(resources: LabResources, point: HookPoint, signal: AbortSignal): Promise<Float32Array> {
  const tokens = await tokenizePrompts(resources, resources.neutralPrompts ?? PLAIN_SENTENCES);
  const usable = tokens.filter(({ length }) => length > 1);
  const results = await resources.engine.run({ prompts: usable, taps: [{ point, positions: { from: 1 } }] }, signal);
  const parts = results.flatMap(({ activations }) => activations);
  const rows = new Float32Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    rows.set(part, at);
    at += part.length;
  }
  return rows;
}

async function encode(
  { engine, model }: LabResources,
  sae: Sae,
  rows: Float32Array,
  { top_k, max_rows }: { top_k: number; max_rows: number },
  { signal, progress }: LabContext,
) {
  const count = rows.length / sae.width;
  const atOnce = Math.max(1, Math.floor(MOST_FEATURES / sae.features));
  const means = new Float32Array(sae.features);
  const ofRows: { row: number; l0: number; fvu: number | null; top_features: ReturnType<typeof shown> }[] = [];
  let fit: SaeFit | undefined;
  for (let from = 0; from < count; from += atOnce) {
    const some = rows.subarray(from * sae.width, (from + atOnce) * sae.width);
    const features = await engine.encodeSae(sae, some, signal);
    for (let i = 0; i < features.length; i++) {
      const feature = i % sae.features;
      const activation = features[i] ?? missing('feature', i);
      means[feature] = (means[feature] ?? missing('mean of feature', feature)) + activation / count;
    }
    // A sample of rows is enough: the fit hardly changes beyond it.
    const part = from < max_rows || !fit ? checkSae(sae, model, some, { features, force: true }) : undefined;
    fit ??= part;
    for (let row = from; row < Math.min(from + atOnce, count, max_rows); row++) {
      const own = features.subarray((row - from) * sae.features, (row - from + 1) * sae.features);
      const { l0, fvu } = part?.each[row - from] ?? missing('fit of row', row);
      ofRows.push({ row, l0, fvu: finite(fvu), top_features: shown(sae, own, top_k) });
    }
    if (from + atOnce < count) progress(`Encoded ${from + atOnce} of ${count} rows`);
  }
  if (!fit) throw new Error('The capture has no rows.');
  return { fit, strongest: shown(sae, means, top_k), ofRows };
}

function shown(sae: Sae, features: Float32Array, most: number) {
  return strongestFeatures(sae, features, most).map(({ feature, ...rest }) => ({ feature_id: feature, ...rest }));
}

/** JSON has no NaN. */
function finite(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}
