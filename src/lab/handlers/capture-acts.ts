/** Answers `capture_acts`: runs prompts in batches, and writes their activations straight to disk. */

import { CuvetteError } from '../../errors.ts';
import { runChecked } from '../causality/readings.ts';
import type { HookPoint } from '../core/engine.ts';
import type { LabContext } from '../core/lab.ts';
import { hashOf } from '../core/manifest.ts';
import { missing, pick } from '../core/missing.ts';
import { parsePosition, resolvePositions } from '../core/positions.ts';
import { captureActs } from '../primitives/capture-acts.ts';
import type { CaptureDraft, CaptureRecord } from '../store/captures.ts';
import { classLabels } from './class-labels.ts';
import { defineHandler } from './handler.ts';
import { type Layer, layerOf } from './layers.ts';
import { batchesOf, checkLength, promptsOf, tokenizePrompts } from './prompts.ts';
import { type LabResources, manifestFor } from './resources.ts';

export const captureActsHandler = defineHandler(captureActs, async (resources, args, context) => {
  const prompts = promptsOf(args);
  checkLength('labels', args.labels, prompts.length);
  if (args.labels) classLabels(args.labels);
  checkLength('pair_ids', args.pair_ids, prompts.length);
  checkLength('template_ids', args.template_ids, prompts.length);
  const layers = distinct(args.layers.map((layer) => layerOf(resources, layer)));
  const positions = args.positions.map((spec) => ({ spec, position: parsePosition(spec) }));
  const tokens = await tokenizePrompts(resources, prompts);
  const relative = [...new Set(positions.map(({ position }) => position))];
  const indices = tokens.map((one, i) => resolvePositions(relative, one.length, prompts[i]));
  const { id, weights, tokenizer } = resources.model;
  const width = commonWidth(layers, Math.max(...tokens.map(({ length }) => length)));

  const draft = await resources.store.captures.draft({
    points: layers.map(({ name }) => name),
    positions: relative,
    prompts: prompts.length,
    width,
  });
  try {
    await fill(draft, resources, { tokens, layers, positions: relative, width }, context);
    const about = {
      prompts,
      ...(args.labels && { labels: args.labels }),
      ...(args.pair_ids && { pairs: args.pair_ids.map(String) }),
      ...(args.template_ids && { templates: args.template_ids.map(String) }),
    };
    const record: CaptureRecord = {
      format: 1,
      model: { id, weights, tokenizer },
      points: layers.map(({ name }) => name),
      positions,
      width,
      tokenCounts: tokens.map(({ length }) => length),
      ...about,
      data: hashOf(about),
      activations: await draft.finish(),
    };
    const [first = missing('prompt', 0)] = indices;
    const indexOf = (position: number) => first[relative.indexOf(position)] ?? missing('index of position', position);
    const inputs = { points: record.points, positions: relative };
    const outputs = { activations: record.activations, token_counts: record.tokenCounts };
    const manifest = manifestFor(resources, { tool: captureActs.name, inputs, outputs, data: record.data });
    const captureId = `cap_${manifest.manifest_sha256.slice(0, 16)}`;
    await draft.keep(captureId, record);
    await resources.store.manifests.append(manifest);
    return {
      capture_id: captureId,
      layers: layers.map(({ shown }) => shown),
      positions: args.positions,
      position_indices: positions.map(({ position }) => indexOf(position)),
      n_input_tokens: record.tokenCounts.reduce((sum, count) => sum + count, 0),
      n_prompts: prompts.length,
      d_model: resources.model.width,
      width,
      manifest_sha256: manifest.manifest_sha256,
    };
  } finally {
    await draft.discard();
  }
});

async function fill(
  draft: CaptureDraft,
  { engine }: LabResources,
  what: { tokens: number[][]; layers: Layer[]; positions: number[]; width: number },
  { signal, progress }: LabContext,
): Promise<void> {
  const { tokens, layers, positions, width } = what;
  const taps = layers.map(({ point }: { point: HookPoint }) => ({ point, positions }));
  const run = { engine, signal, advance: () => {} };
  let done = 0;
  for (const batch of batchesOf(tokens)) {
    const results = await runChecked(run, { prompts: pick(tokens, batch, 'prompt'), taps });
    for (const [l, layer] of layers.entries()) {
      for (const [p, position] of positions.entries()) {
        const rows = new Float32Array(batch.length * width);
        for (const [row, { activations }] of results.entries()) {
          const own = activations[l] ?? missing(`activations of ${layer.name}, prompt`, batch[row]);
          // The rows of patterns are filled up with the weight of tokens that a shorter prompt does not have.
          rows.set(rowAt(own, p, layer.width ?? own.length / positions.length), row * width);
        }
        await draft.append(layer.name, position, rows);
      }
    }
    done += batch.length;
    if (done < tokens.length) progress(`Captured ${done} of ${tokens.length} prompts`);
  }
}

function rowAt(rows: Float32Array, row: number, width: number): Float32Array {
  const found = rows.subarray(row * width, (row + 1) * width);
  return found.length === width ? found : missing('activation at position', row);
}

/** The numbers of every row of the capture: patterns have one for each token of the longest prompt. */
function commonWidth(layers: readonly Layer[], longest: number): number {
  const [first = missing('layer', 0), ...others] = layers.map(({ name, width = longest }) => ({ name, width }));
  const other = others.find(({ width }) => width !== first.width);
  if (!other) return first.width;
  throw new CuvetteError(
    'invalid_input',
    `Rows of ${first.name} have ${first.width} numbers, and rows of ${other.name} ${other.width}. Capture them apart.`,
  );
}

function distinct(layers: Layer[]): Layer[] {
  return layers.filter(({ name }, i) => layers.findIndex((other) => other.name === name) === i);
}
