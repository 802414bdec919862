/** Answers `train_probe`: fits a direction to some rows, and tests it on the others. */

import { CuvetteError } from '../../errors.ts';
import { countClasses, nameOfClass } from '../causality/classes.ts';
import { classesOf, labelsOf } from '../causality/dataset.ts';
import type { Labelled } from '../causality/decodability.ts';
import { rowsOf } from '../causality/direction.ts';
import type { TestedPart } from '../causality/tested-part.ts';
import { hashOf, hashOfNumbers } from '../core/manifest.ts';
import { missing, pick } from '../core/missing.ts';
import { trainProbe } from '../primitives/train-probe.ts';
import { auroc } from '../statistics/auroc.ts';
import { plattScaling } from '../statistics/calibration.ts';
import { classMeans } from '../statistics/class-means.ts';
import { differenceOfMeans } from '../statistics/difference-of-means.ts';
import { fitLogistic } from '../statistics/logistic.ts';
import { createRandom } from '../statistics/random.ts';
import { createScorer, project } from '../statistics/scores.ts';
import { mean } from '../statistics/summary.ts';
import { dot, norm } from '../statistics/vectors.ts';
import type { Probe } from '../store/probes.ts';
import { captureActsHandler } from './capture-acts.ts';
import { fitOf } from './causality-protocol.ts';
import { defineHandler } from './handler.ts';
import { holdOut } from './held-out.ts';
import { layerOf } from './layers.ts';
import { recorded } from './resources.ts';
import { labelledRows, positionIn, promptHash } from './rows.ts';
import { separationOf, separationOfClasses } from './separation.ts';
import { showProbe } from './show-probe.ts';
import { targetWords } from './target-words.ts';
import { trainSubspace } from './train-subspace.ts';

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
  const labelled = labelledRows(capture, labels);
  const { dataset } = labelled;
  const rows = capture.rows(layer.name, positionIn(capture, position));
  const { by, trained, heldOut } = holdOut(dataset, held_out, createRandom(seed, 'held-out rows'));
  const trainedLabels = labelsOf(dataset, trained);

  context.progress(`Training on ${trained.length} rows`);
  const notes: string[] = [];
  const seen = rowsOf(rows, trained, capture.width);
  const classes = classesOf(dataset);
  const data: Labelled = { dataset, activations: rows, width: capture.width, seed };
  const part =
    method === 'interchange' || classes > 2
      ? await trainSubspace(
          resources,
          {
            wanted: fitOf({ fit: method, rank: args.rank }),
            site: { ...layer.point, position: positionIn(capture, position) },
            data,
            trained,
            words: { ...labelled, ...targetWords(args, labelled) },
          },
          context,
        )
      : undefined;
  if (!part) checkPlain(args);
  const fit = part
    ? inSubspace(part, seen, trainedLabels)
    : method === 'logistic'
      ? logistic(seen, trainedLabels, c, max_iter, notes)
      : means(seen, trainedLabels);
  const scored = createScorer(rows, capture.width)(fit.direction);
  const scores = scored.values.map((score) => score + fit.bias);
  const separation = (chosen: number[]) =>
    part?.lines
      ? separationOfClasses(data, chosen, part.direction, part.lines)
      : separationOf(dataset, chosen, scored, seed);
  const test = heldOut.length > 0 ? separation(heldOut) : undefined;
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
      ...(classes > 2 && {
        classes: Array.from({ length: classes }, (_, label) => nameOfClass(labelled.classes, label)),
      }),
      swing: swingOf(trainedScores, trainedLabels) / norm(fit.direction),
      ...(classes === 2 && {
        calibration: method === 'logistic' ? { slope: 1, intercept: 0 } : plattScaling(trainedScores, trainedLabels),
      }),
    },
  };
  await resources.store.probes.save(probe);

  const result = {
    n_train: trained.length,
    n_held_out: heldOut.length,
    auroc: test?.auroc ?? null,
    auroc_interval: test?.interval ?? null,
    train_auroc: part?.lines ? separation(trained).auroc : auroc(trainedScores, trainedLabels, scored.resolution),
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
      ...(args.rank !== undefined && { rank: args.rank }),
      ...(args.class_tokens && { class_tokens: args.class_tokens }),
      labels: dataset.map(({ label }) => label),
    },
    outputs: {
      ...result,
      direction: hashOfNumbers(fit.direction),
      bias: fit.bias,
      ...(fit.basis && { basis: fit.basis.map(hashOfNumbers) }),
    },
    data: hashOf([capture.data, dataset.map(({ label }) => label)]),
    seed,
  });
  return { probe: showProbe(probe), capture_id: captureId, ...result, notes, manifest_sha256: manifest };
});

interface Fit {
  direction: Float32Array;
  bias: number;
  basis?: Float32Array[];
}

/** The direction is the line between the class means in it, and 0 the middle of them. */
function inSubspace({ direction, subspace }: TestedPart, rows: Float32Array, labels: number[]): Fit {
  const centre = mean(meanScores(project(rows, direction), labels));
  const basis = subspace.vectors.length > 1 ? { basis: [...subspace.vectors] } : {};
  return { direction, bias: -centre, ...basis };
}

function checkPlain({ rank, class_tokens }: { rank?: unknown; class_tokens?: unknown }): void {
  if (rank === undefined && class_tokens === undefined) return;
  throw new CuvetteError('invalid_input', 'rank and class_tokens are for method: interchange.');
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

/** The distance between the mean scores of the classes; of more than two, of those furthest apart. */
function swingOf(scores: number[], labels: number[]): number {
  const means = meanScores(scores, labels);
  const [first = missing('class', 0), second = missing('class', 1)] = means;
  return means.length === 2 ? second - first : Math.max(...means) - Math.min(...means);
}

/** Of each class. */
function meanScores(scores: ArrayLike<number>, labels: readonly number[]): number[] {
  return classMeans(Float64Array.from(scores), labels, countClasses(labels)).map(([one = missing('mean')]) => one);
}
