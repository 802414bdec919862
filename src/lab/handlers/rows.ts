/** Rows of a capture as probes see them: activations at one layer and position, with labels and what belongs together. */

import { CuvetteError } from '../../errors.ts';
import { makeDataset } from '../causality/dataset.ts';
import type { DatasetRow } from '../causality/evidence.ts';
import { hashOf } from '../core/manifest.ts';
import { parsePosition } from '../core/positions.ts';
import type { Capture, Label } from '../store/captures.ts';
import type { Probe } from '../store/probes.ts';
import { checkCount } from './prompts.ts';

/** The position that is meant, or the only one that there is. */
export function positionIn(capture: Capture, wanted: string | number | undefined): number {
  const [only] = capture.positions;
  if (wanted !== undefined) return parsePosition(wanted);
  if (only && capture.positions.length === 1) return only.position;
  const specs = capture.positions.map(({ spec }) => spec).join(', ');
  throw new CuvetteError('invalid_input', `The capture ${capture.id} has the positions ${specs}. Give position.`);
}

/** Those that are given, or those of the capture. */
export function labelsFor(capture: Capture, given: Label[] | undefined): Label[] | undefined {
  checkCount('labels', given, capture.prompts.length, `rows of the capture ${capture.id}`);
  return given ?? capture.labels;
}

export function datasetOf(capture: Capture, given: Label[] | undefined): DatasetRow[] {
  const labels = labelsFor(capture, given);
  if (!labels)
    throw new CuvetteError(
      'invalid_input',
      `The capture ${capture.id} has no labels. Give labels: 0 or 1 for each row.`,
    );
  const { pairs, templates } = capture;
  return makeDataset(capture.prompts, labels, { ...(pairs && { pairs }), ...(templates && { templates }) });
}

/** Rows whose prompts the probe was trained on. */
export function seenRows({ training }: Probe, capture: Capture): number[] {
  const seen = new Set(training?.trained_on);
  return capture.prompts.flatMap((prompt, row) => (seen.has(markOf(prompt)) ? [row] : []));
}

/** What a prompt is known by where its text is not wanted. */
export function markOf(prompt: string): string {
  return hashOf(prompt).slice(0, 16);
}

/** The chosen rows of a matrix, one after the other. */
export function pickRows(rows: Float32Array, width: number, chosen: readonly number[]): Float32Array {
  const picked = new Float32Array(chosen.length * width);
  chosen.forEach((row, i) => {
    picked.set(rows.subarray(row * width, (row + 1) * width), i * width);
  });
  return picked;
}
