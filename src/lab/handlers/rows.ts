/** Selects rows of a capture for probes: activations at one layer and position, with labels, pairs and templates. */

import { CuvetteError } from '../../errors.ts';
import { makeDataset } from '../causality/dataset.ts';
import type { DatasetRow } from '../causality/question.ts';
import { hashOf } from '../core/manifest.ts';
import { parsePosition } from '../core/positions.ts';
import type { Capture, Label } from '../store/captures.ts';
import type { Probe } from '../store/probes.ts';
import { checkTwoClasses, classLabels } from './class-labels.ts';
import { checkLength } from './prompts.ts';

/** The wanted position, or the only one of the capture. */
export function positionIn(capture: Capture, wanted: string | number | undefined): number {
  const [only] = capture.positions;
  if (wanted !== undefined) return parsePosition(wanted);
  if (only && capture.positions.length === 1) return only.position;
  const specs = capture.positions.map(({ spec }) => spec).join(', ');
  throw new CuvetteError('invalid_input', `The capture ${capture.id} has the positions ${specs}. Give position.`);
}

/** The given labels, or those of the capture. */
export function labelsFor(capture: Capture, given: Label[] | undefined): Label[] | undefined {
  checkLength('labels', given, capture.prompts.length, `rows of the capture ${capture.id}`);
  return given ?? capture.labels;
}

/** Rows with names of their classes, if labels are names. */
export interface LabelledRows {
  dataset: DatasetRow[];
  classes?: string[];
}

/** `known` are the names that classes have elsewhere. */
export function labelledRows(capture: Capture, given: Label[] | undefined, known?: readonly string[]): LabelledRows {
  const labels = labelsFor(capture, given);
  if (!labels)
    throw new CuvetteError(
      'invalid_input',
      `The capture ${capture.id} has no labels. Give labels: 0 or 1 for each row, or the names of classes.`,
    );
  const { pairs, templates } = capture;
  const { labels: numbers, names } = classLabels(labels, known);
  const dataset = makeDataset(capture.prompts, numbers, { ...(pairs && { pairs }), ...(templates && { templates }) });
  return { dataset, ...(names && { classes: names }) };
}

/** For a tool that compares two classes. */
export function twoClassRows(capture: Capture, given: Label[] | undefined, tool: string): DatasetRow[] {
  const { dataset } = labelledRows(capture, given);
  checkTwoClasses(
    dataset.map(({ label }) => label),
    tool,
  );
  return dataset;
}

/** Rows whose prompts the probe was trained on. */
export function seenRows({ training }: Probe, capture: Capture): number[] {
  const seen = new Set(training?.trained_on);
  return capture.prompts.flatMap((prompt, row) => (seen.has(promptHash(prompt)) ? [row] : []));
}

/** Identifies a prompt in files that must not hold its text. */
export function promptHash(prompt: string): string {
  return hashOf(prompt).slice(0, 16);
}
