/** Answers `train_probe`: fits a direction to some rows, and tests it on the others. */

import { CuvetteError } from '../../errors.ts';
import { labelsOf } from '../causality/dataset.ts';
import { rowsOf } from '../causality/direction.ts';
import { hashOf, hashOfNumbers } from '../core/manifest.ts';
import { pick } from '../core/missing.ts';
import { trainProbe } from '../primitives/train-probe.ts';
import { auroc } from '../statistics/auroc.ts';
import { plattScaling } from '../statistics/calibration.ts';
import { differenceOfMeans } from '../statistics/difference-of-means.ts';
import { fitLogistic } from '../statistics/logistic.ts';
import { createRandom } from '../statistics/random.ts';
import { createScorer } from '../statistics/scores.ts';
import { mean } from '../statistics/summary.ts';
import { dot, norm } from '../statistics/vectors.ts';
import type { Probe } from '../store/probes.ts';
import { captureActsHandler } from './capture-acts.ts';
import { defineHandler } from './handler.ts';
import { holdOut } from './held-out.ts';
import { layerOf } from './layers.ts';
import { recorded } from './resources.ts';
import { datasetOf, positionIn, promptHash } from './rows.ts';
import { separationOf } from './separation.ts';
import { showProbe } from './show-probe.ts';

export const trainProbeHandler = defineHandler(trainProbe, async (resources, args, context) => {
  const { probe_id, prompts, labels, pair_ids, template_ids, position, method, c, max_iter, held_out, seed } = args;
  if ((prompts === undefined) === (args.capture_id === undefined))
    throw new CuvetteError('invalid_input', 'Give either prompts or capture_id to train on.');
  if (prompts === undefined && (pair_ids ?? template_ids))
    throw new CuvetteError(
      'invalid_input',
      'A capture has its own pair_ids and template_ids. Leave them out, or give prompts.',
    );
  const layer = layerOf(resources, args.layer);
  const asked = { prompts, labels, pair_ids, template_ids, layers: [layer.name], positions: [position] };
  const captureId = args.capture_id ?? String((await captureActsHandler.run(resources, asked, context)).capture_id);
  const capture = await resources.store.captures.get(captureId);
  const dataset = datasetOf(capture, labels);
  const rows = capture.rows(layer.name, positionIn(capture, position));
  const { by, trained, heldOut } = holdOut(dataset, held_out, createRandom(seed, 'held-out rows'));
  const trainedLabels = labelsOf(dataset, trained);

  context.progress(`Training on ${trained.length} rows`);
  const notes: string[] = [];
  const seen = rowsOf(rows, trained, capture.width);
  const fit = method === 'logistic' ? logistic(seen, trainedLabels, c, max_iter, notes) : means(seen, trainedLabels);
  const scored = createScorer(rows, capture.width)(fit.direction);
  const scores = scored.values.map((score) => score + fit.bias);
  const test = heldOut.length > 0 ? separationOf(dataset, heldOut, scored, seed) : undefined;
  if (!test) notes.push('No rows were held out, so there is nothing to tell how well it does on others.');

  const trainedScores = pick(scores, trained, 'score of row');
  const probe: Probe = {
    id: probe_id,
    modelId: resources.model.id,
    layer: layer.shown,
    position,
    license: null,
    sourceUrl: null,
    ...fit,
    training: {
      method,
      capture_id: captureId,
      ...(method === 'logistic' && { c }),
      seed,
      split_by: by,
      n_train: trained.length,
      n_held_out: heldOut.length,
      auroc: test?.auroc ?? null,
      trained_on: pick(capture.prompts, trained, 'prompt').map(promptHash),
      swing: swingOf(trainedScores, trainedLabels) / norm(fit.direction),
      calibration: method === 'logistic' ? { slope: 1, intercept: 0 } : plattScaling(trainedScores, trainedLabels),
    },
  };
  await resources.store.probes.save(probe);

  const result = {
    n_train: trained.length,
    n_held_out: heldOut.length,
    auroc: test?.auroc ?? null,
    auroc_interval: test?.interval ?? null,
    train_auroc: auroc(trainedScores, trainedLabels, scored.resolution),
  };
  const manifest = await recorded(resources, {
    tool: trainProbe.name,
    inputs: {
      capture_id: captureId,
      point: layer.name,
      position,
      method,
      c,
      max_iter,
      held_out,
      labels: dataset.map(({ label }) => label),
    },
    outputs: { ...result, direction: hashOfNumbers(fit.direction), bias: fit.bias },
    data: hashOf([capture.data, dataset.map(({ label }) => label)]),
    seed,
  });
  return { probe: showProbe(probe), capture_id: captureId, ...result, notes, manifest_sha256: manifest };
});

interface Fit {
  direction: Float32Array;
  bias: number;
}

function logistic(rows: Float32Array, labels: number[], c: number, maxIterations: number, notes: string[]): Fit {
  const { weights, bias, converged } = fitLogistic(rows, labels, { c, maxIterations });
  if (!converged) notes.push(`The regression was stopped after ${maxIterations} steps. Raise max_iter, or lower c.`);
  return { direction: Float32Array.from(weights), bias };
}

/** Chooses the bias that puts 0 in the middle between the class means. */
function means(rows: Float32Array, labels: number[]): Fit {
  const direction = Float32Array.from(differenceOfMeans(rows, labels));
  if (norm(direction) === 0)
    throw new CuvetteError(
      'invalid_input',
      'Both classes have the same mean here, so there is no direction between them. Choose another layer or position.',
    );
  const width = direction.length;
  const meanOf = (label: number) =>
    mean(labels.flatMap((one, row) => (one === label ? [dot(rows, direction, row * width)] : [])));
  return { direction, bias: -(meanOf(0) + meanOf(1)) / 2 };
}

/** The distance between the mean scores of the classes. */
function swingOf(scores: number[], labels: number[]): number {
  const meanOf = (label: number) => mean(scores.filter((_, i) => labels[i] === label));
  return meanOf(1) - meanOf(0);
}
