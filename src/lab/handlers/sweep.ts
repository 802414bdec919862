/** Answers `sweep`: makes one question of layers, positions and directions, counts it once among those of the lab session, and stores the record. */

import type * as z from 'zod';
import { VERSION } from '../../version.ts';
import type { LabContext } from '../core/lab.ts';
import { hashOf } from '../core/manifest.ts';
import { parsePosition } from '../core/positions.ts';
import { sweep } from '../primitives/sweep.ts';
import { concludeSweep } from '../site-sweep/conclude.ts';
import { runSweep } from '../site-sweep/run-sweep.ts';
import type { SweepQuestion, SweepRecord } from '../site-sweep/sweep-record.ts';
import type { Capture } from '../store/captures.ts';
import { fitOf, probeDirection, progressIn } from './causality-protocol.ts';
import { defineHandler } from './handler.ts';
import { keepRecord } from './keep-record.ts';
import { layerOf } from './layers.ts';
import type { LabResources } from './resources.ts';
import { labelledRows } from './rows.ts';
import { sweepAnswer } from './sweep-answer.ts';
import { targetWords } from './target-words.ts';

export const sweepHandler = defineHandler(sweep, async (resources, args, context) => {
  const notes: string[] = [];
  const question = await makeSweepQuestion(resources, args, notes);
  const record = await answerSweep(resources, question, context);
  const kept = await keepRecord(resources, sweep.name, record, { conclusion: record.conclusion });
  return { ...sweepAnswer(record, args.capture_id), ...(args.include_evidence && { record }), notes, ...kept };
});

type Arguments = z.output<typeof sweep.input>;

async function makeSweepQuestion(resources: LabResources, args: Arguments, notes: string[]): Promise<SweepQuestion> {
  const capture = await resources.store.captures.get(args.capture_id);
  const layers = args.layers ?? Array.from({ length: resources.model.layers }, (_, layer) => layer);
  const positions = args.positions?.map(parsePosition) ?? capture.positions.map(({ position }) => position);
  const rows = labelledRows(capture, undefined);
  return {
    sites: layers.flatMap((layer) => positions.map((position) => ({ ...layerOf(resources, layer).point, position }))),
    directions: await directionsOf(resources, args, capture, notes),
    ...rows,
    ...targetWords(args, rows),
    seed: args.seed,
  };
}

async function directionsOf(
  { store }: LabResources,
  { fit, rank, probe_ids = [] }: Arguments,
  capture: Capture,
  notes: string[],
): Promise<SweepQuestion['directions']> {
  const probes = await Promise.all(probe_ids.map((id) => store.probes.get(id)));
  const method = fit ?? (probes.length === 0 ? 'difference-of-means' : undefined);
  return [
    ...(method ? [{ name: method, direction: fitOf({ fit: method, rank }) }] : []),
    ...probes.map((probe) => ({ name: probe.id, direction: probeDirection(probe, capture, notes) })),
  ];
}

/** Runs the sweep; one that gets no answer is taken out of the count. */
async function answerSweep(
  { engine, store }: LabResources,
  question: SweepQuestion,
  { signal, progress }: LabContext,
): Promise<SweepRecord> {
  const { number: family, forget } = await store.family.count(hashOf({ sweep: question }), signal);
  try {
    const onProgress = progressIn('The sweep', progress);
    const evidence = await runSweep(engine, question, { signal, family, version: VERSION, onProgress });
    return { question, evidence, conclusion: concludeSweep(evidence) };
  } catch (error) {
    await forget();
    throw error;
  }
}
