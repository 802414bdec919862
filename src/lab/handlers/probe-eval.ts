/** Answers `probe_eval`: scores the rows of a capture, with AUROC and calibration where they have labels. */

import { CuvetteError } from '../../errors.ts';
import { labelsOf } from '../causality/dataset.ts';
import type { DatasetRow } from '../causality/question.ts';
import { hashOf, hashOfNumbers } from '../core/manifest.ts';
import { pick } from '../core/missing.ts';
import { probeEval } from '../primitives/probe-eval.ts';
import { auroc } from '../statistics/auroc.ts';
import { brierScore, reliability } from '../statistics/calibration.ts';
import { sigmoid } from '../statistics/logistic.ts';
import { createRandom } from '../statistics/random.ts';
import { createScorer, type Scores } from '../statistics/scores.ts';
import { mean, quantile } from '../statistics/summary.ts';
import type { Capture } from '../store/captures.ts';
import type { Probe } from '../store/probes.ts';
import { defineHandler } from './handler.ts';
import { layerOf } from './layers.ts';
import { recorded } from './resources.ts';
import { labelsFor, positionIn, seenRows, twoClassRows } from './rows.ts';
import { separationOf } from './separation.ts';

/** How many scores an answer has by default. */
const MOST_SCORES = 500;

/** The calibration of a probe that this lab did not train: its scores are taken for log odds, and a note says so. */
const LOG_ODDS = { slope: 1, intercept: 0 };

export const probeEvalHandler = defineHandler(probeEval, async (resources, args, context) => {
  const { seed, n_random, all_scores } = args;
  const [probe, capture] = await Promise.all([
    resources.store.probes.get(args.probe_id),
    resources.store.captures.get(args.capture_id),
  ]);
  const layer = layerOf(resources, args.layer ?? probe.layer);
  checkWidth(probe, capture);
  const notes: string[] = [];
  const rows = capture.rows(layer.name, positionFor(probe, capture, notes));
  const scored = createScorer(rows, capture.width)(probe.direction);
  const scores = scored.values.map((score) => score + probe.bias);
  const dataset = labelsFor(capture, args.labels) ? twoClassRows(capture, args.labels, probeEval.name) : undefined;
  const evaluated = rowsToEvaluate(probe, capture, args.include_training_rows, notes);
  context.signal.throwIfAborted();

  const separation = dataset ? separate(dataset, evaluated.rows, scored, seed, notes) : undefined;
  const against = { rows, chosen: evaluated.rows, width: capture.width, count: n_random, seed };
  const random = dataset && separation ? randomDirections(dataset, against, separation.auroc) : null;
  if (separation && !probe.training)
    notes.push(
      'For the calibration, scores were taken for log odds; a probe from elsewhere may mean something else by them.',
    );
  const calibration =
    dataset && separation && !probe.training?.classes ? calibrationOf(dataset, evaluated.rows, scores, probe) : null;
  if (probe.basis)
    notes.push(
      `The probe is a subspace of ${probe.basis.length} dimensions: scores are along the line between its class means.`,
    );
  const isShortened = !all_scores && scores.length > MOST_SCORES;
  if (isShortened) notes.push(`scores has the first ${MOST_SCORES} of ${scores.length}. all_scores: true gives all.`);

  const result = {
    n_samples: scores.length,
    mean_score: mean(scores),
    auroc: separation?.auroc ?? null,
    auroc_interval: separation?.interval ?? null,
    n_evaluated: evaluated.rows.length,
    evaluated_rows: evaluated.kind,
    held_out_rows: evaluated.kind === 'held-out' ? evaluated.rows : null,
    calibration,
    random_directions: random,
  };
  const manifest = await recorded(resources, {
    tool: probeEval.name,
    inputs: {
      probe: hashOf([hashOfNumbers(probe.direction), probe.bias]),
      capture_id: capture.id,
      point: layer.name,
      n_random,
    },
    outputs: { ...result, scores: Array.from(scores) },
    data: hashOf([capture.data, dataset?.map(({ label }) => label) ?? null]),
    seed,
  });
  return {
    probe_id: probe.id,
    capture_id: capture.id,
    layer: layer.shown,
    ...result,
    scores: Array.from(isShortened ? scores.subarray(0, MOST_SCORES) : scores),
    notes,
    manifest_sha256: manifest,
  };
});

function checkWidth(probe: Probe, capture: Capture): void {
  if (probe.direction.length === capture.width) return;
  throw new CuvetteError(
    'invalid_input',
    `The probe ${probe.id} is ${probe.direction.length} wide, and the capture ${capture.id} ${capture.width}. It is a probe of another model.`,
  );
}

/** The probe's position, or the only one of the capture. */
function positionFor(probe: Probe, capture: Capture, notes: string[]): number {
  const wanted = positionIn(capture, probe.position);
  const [only] = capture.positions;
  if (capture.positions.length > 1 || !only || only.position === wanted) return wanted;
  notes.push(`The probe is of position ${probe.position}, and the capture of ${only.spec}: that is what was scored.`);
  return only.position;
}

function rowsToEvaluate(
  probe: Probe,
  capture: Capture,
  isAll: boolean,
  notes: string[],
): { kind: 'all' | 'held-out'; rows: number[] } {
  const all = capture.prompts.map((_, row) => row);
  const seen = new Set(seenRows(probe, capture));
  if (seen.size === 0) return { kind: 'all', rows: all };
  if (isAll) {
    notes.push(
      `${seen.size} of ${all.length} rows are among those that the probe was trained on: this AUROC says little.`,
    );
    return { kind: 'all', rows: all };
  }
  const rows = all.filter((row) => !seen.has(row));
  if (rows.length === 0)
    throw new CuvetteError(
      'invalid_input',
      `The probe ${probe.id} was trained on all rows of the capture ${capture.id}, so they cannot tell how good it is. Capture other prompts, or train with held_out: 0.3; include_training_rows: true counts them all the same.`,
    );
  notes.push(`AUROC and calibration are of the ${rows.length} rows that the probe was not trained on.`);
  return { kind: 'held-out', rows };
}

function separate(dataset: DatasetRow[], rows: number[], scores: Scores, seed: number, notes: string[]) {
  if (new Set(labelsOf(dataset, rows)).size === 2) return separationOf(dataset, rows, scores, seed);
  notes.push('All rows have the same label, so there is no AUROC.');
  return undefined;
}

function calibrationOf(dataset: DatasetRow[], rows: number[], scores: Float64Array, { training }: Probe) {
  const { slope, intercept } = training?.calibration ?? LOG_ODDS;
  const labels = labelsOf(dataset, rows);
  const probabilities = pick(scores, rows, 'score of row').map((score) => sigmoid(slope * score + intercept));
  const { expectedError, bins } = reliability(probabilities, labels);
  return {
    brier: brierScore(probabilities, labels),
    expected_calibration_error: expectedError,
    bins: bins
      .filter(({ count }) => count > 0)
      .map(({ low, high, count, probability, rate }) => ({
        from: low,
        to: high,
        n: count,
        predicted: probability,
        observed: rate,
      })),
  };
}

/** AUROCs of random directions on the same rows, each with the sign that separates better. */
function randomDirections(
  dataset: DatasetRow[],
  on: { rows: Float32Array; chosen: number[]; width: number; count: number; seed: number },
  reached: number,
) {
  if (on.count === 0) return null;
  const random = createRandom(on.seed, 'random directions for a probe');
  const labels = labelsOf(dataset, on.chosen);
  const score = createScorer(on.rows, on.width);
  const found = Array.from({ length: on.count }, () => {
    const { values, resolution } = score(random.direction(on.width));
    const value = auroc(pick(values, on.chosen, 'score of row'), labels, resolution);
    return Math.max(value, 1 - value);
  });
  return {
    n: on.count,
    auroc_mean: mean(found),
    auroc_quantile_95: quantile(found, 0.95),
    p: (1 + found.filter((value) => value >= reached).length) / (on.count + 1),
  };
}
