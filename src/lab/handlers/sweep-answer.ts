/** Formats the record of a sweep as an answer: the maps, the picture, and the best sites with the arguments that ask the protocol there. */

import type * as z from 'zod';
import { byClass, nameOfClass } from '../causality/classes.ts';
import { missing, pick } from '../core/missing.ts';
import type { sweep } from '../primitives/sweep.ts';
import { drawSweep } from '../report/site-map.ts';
import { PIPED } from '../report/terminal-style.ts';
import { cellState } from '../site-sweep/conclude.ts';
import { mapsOf } from '../site-sweep/maps.ts';
import type { SweepCell, SweepRecord } from '../site-sweep/sweep-record.ts';
import { shownPoint } from './layers.ts';
import { ends, targetAnswer } from './verdict-answer.ts';

type Answer = Omit<z.output<typeof sweep.output>, 'record' | 'record_file' | 'notes' | 'manifest_sha256'>;

export function sweepAnswer(record: SweepRecord, captureId: string): Answer {
  const { evidence, conclusion } = record;
  const { target, multiplicity } = evidence;
  return {
    state: conclusion.state,
    explanation: conclusion.sentence,
    picture: drawSweep(record, PIPED),
    maps: mapsOf(evidence).map(({ direction, points, positions, rows }) => {
      const each = <T>(value: (cell: SweepCell) => T) => rows.map((row) => row.map(value));
      return {
        direction,
        layers: points.map(shownPoint),
        positions,
        state: each((cell) => cellState(cell, evidence)),
        interchange: each(({ component }) => rounded(component.value)),
        whole_activation: each(({ whole }) => rounded(whole.value)),
        auroc: each(({ decodability }) => rounded(decodability.auroc)),
      };
    }),
    best: pick(evidence.cells, conclusion.best, 'cell').map((cell) => ({
      layer: shownPoint(cell.site),
      position: cell.site.position,
      direction: cell.direction,
      state: cellState(cell, evidence),
      interchange: {
        value: cell.component.value,
        interval: ends(cell.component.interval),
        p_adjusted: cell.test?.adjusted ?? null,
      },
      whole_activation: { value: cell.whole.value, interval: ends(cell.whole.interval) },
      auroc: cell.decodability.auroc,
      protocol: protocolArguments(record, cell, captureId),
    })),
    behaviour_gap: evidence.behaviour.gap,
    target: targetAnswer(target, record.question.classes),
    n_samples: evidence.split.test.length,
    family: multiplicity.question,
    multiplicity: {
      error_rate: multiplicity.rate,
      level: multiplicity.level,
      spent: multiplicity.spent,
      cells: multiplicity.tests,
    },
    runs: evidence.runs,
  };
}

/** The same question, at one site, to the protocol. */
function protocolArguments(
  { question: { directions, target, classes, seed } }: SweepRecord,
  { site, direction: name }: SweepCell,
  captureId: string,
): Record<string, unknown> {
  const { direction } = directions.find((one) => one.name === name) ?? missing('direction', name);
  return {
    capture_id: captureId,
    layer: shownPoint(site),
    position: site.position,
    ...(direction.kind === 'fit'
      ? { fit: direction.method, ...(direction.rank !== undefined && { rank: direction.rank }) }
      : { probe_id: name }),
    ...(target && wordArguments(target, classes)),
    seed,
  };
}

function wordArguments(
  target: NonNullable<SweepRecord['question']['target']>,
  names: readonly string[] | undefined,
): Record<string, unknown> {
  if (!names && !target.others) return { positive_tokens: target.positive, negative_tokens: target.negative };
  const words = byClass(target).map((own, label) => [nameOfClass(names, label), own]);
  return { class_tokens: Object.fromEntries(words) };
}

function rounded(value: number): number {
  return Number(value.toFixed(3));
}
