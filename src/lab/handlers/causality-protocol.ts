/** Answers `causality_protocol`: makes a question of the arguments, counts it among those of the lab session, runs the protocol, and stores the record. */

import type * as z from 'zod';
import { CuvetteError } from '../../errors.ts';
import { VERSION } from '../../version.ts';
import { decide } from '../causality/decide.ts';
import { runProtocol } from '../causality/protocol.ts';
import type { CausalQuestion } from '../causality/question.ts';
import type { ProtocolRecord } from '../causality/verdict.ts';
import type { LabContext } from '../core/lab.ts';
import { hashOf } from '../core/manifest.ts';
import { causalityProtocol } from '../primitives/causality-protocol.ts';
import { norm } from '../statistics/vectors.ts';
import type { Capture, Label } from '../store/captures.ts';
import type { Probe } from '../store/probes.ts';
import { defineHandler } from './handler.ts';
import { keepRecord } from './keep-record.ts';
import { layerOf } from './layers.ts';
import type { LabResources } from './resources.ts';
import { labelledRows, positionIn, seenRows } from './rows.ts';
import { targetWords } from './target-words.ts';
import { verdictAnswer } from './verdict-answer.ts';

export const causalityProtocolHandler = defineHandler(causalityProtocol, async (resources, args, context) => {
  const notes: string[] = [];
  const { question, length } = await makeQuestion(resources, args, notes);
  const record = await answer(resources, question, args, context);
  const kept = await keepRecord(resources, causalityProtocol.name, record, { verdict: record.verdict });
  return { ...verdictAnswer(record, length), ...(args.include_evidence && { record }), notes, ...kept };
});

type Arguments = z.output<typeof causalityProtocol.input>;

async function makeQuestion(
  resources: LabResources,
  args: Arguments,
  notes: string[],
): Promise<{ question: CausalQuestion; length: number }> {
  if ((args.probe_id === undefined) === (args.fit === undefined))
    throw new CuvetteError(
      'invalid_input',
      'Give probe_id, or fit: difference-of-means to find the direction in half of the data.',
    );
  const capture = await resources.store.captures.get(args.capture_id);
  const probe = args.probe_id === undefined ? undefined : await resources.store.probes.get(args.probe_id);
  const others = await Promise.all((args.with_probe_ids ?? []).map((id) => resources.store.probes.get(id)));
  if (others.length > 0 && !probe)
    throw new CuvetteError('invalid_input', 'with_probe_ids adds to probe_id. Give the first of the probes there.');
  const { point } = layerOf(resources, args.layer ?? probe?.layer ?? onlyLayer(capture));
  const position = positionIn(capture, args.position ?? probe?.position);
  const length = probe ? norm(probe.direction) : 1;
  const neutral = args.neutral_prompts ?? resources.neutralPrompts;
  const matched = args.structure_matched_capture_id;
  const rows = labelledRows(capture, args.labels);
  const question: CausalQuestion = {
    site: { ...point, position },
    direction: probe ? spanDirection([probe, ...others], capture, notes) : fitOf(args),
    ...rows,
    ...targetWords(args, rows),
    ...(args.control_tokens && { controls: args.control_tokens }),
    ...(neutral && { neutralPrompts: [...neutral] }),
    ...(matched !== undefined && {
      structureMatched: await matchedSet(resources, matched, args.structure_matched_labels, rows.classes),
    }),
    ...(args.feature_name !== undefined && { featureName: args.feature_name }),
    nameRequired: args.require_name,
    ...(args.nulls !== undefined && { nulls: args.nulls }),
    seed: args.seed,
    ...(args.alpha_sweep && { sweep: sweepOf(args.alpha_sweep, args.alpha_unit ?? 'absolute', length) }),
  };
  return { question, length };
}

/** Runs the protocol; a question that gets no answer is taken out of the count. */
async function answer(
  { engine, store }: LabResources,
  question: CausalQuestion,
  { n_random_seeds }: Arguments,
  { signal, progress }: LabContext,
): Promise<ProtocolRecord> {
  const { featureName: _, nameRequired: __, sweep: ___, ...asked } = question;
  const { number: family, forget } = await store.family.count(hashOf(asked), signal);
  try {
    const onProgress = progressIn('The protocol', progress);
    const asking = question.nulls === undefined ? { ...question, fewestNulls: n_random_seeds } : question;
    const evidence = await runProtocol(engine, asking, { signal, family, version: VERSION, onProgress });
    return { question: asking, evidence, verdict: decide(evidence) };
  } catch (error) {
    await forget();
    throw error;
  }
}

/** Tells every twentieth of the way. */
export function progressIn(what: string, progress: LabContext['progress']): (done: number, about: number) => void {
  let told = 0;
  return (done, about) => {
    const percent = Math.floor((done / about) * 20) * 5;
    if (percent > told) progress(`${what} is ${percent} % done`);
    told = Math.max(told, percent);
  };
}

function onlyLayer({ id, points }: Capture): string {
  const [only, ...others] = points;
  if (only !== undefined && others.length === 0) return only;
  throw new CuvetteError('invalid_input', `The capture ${id} has ${points.join(', ')}. Give layer.`);
}

/** Fits by difference of means unless told otherwise. Only what is fitted on interchange has a rank to choose. */
export function fitOf({
  fit: method = 'difference-of-means',
  rank,
}: Pick<Arguments, 'fit' | 'rank'>): CausalQuestion['direction'] {
  if (rank !== undefined && method !== 'interchange')
    throw new CuvetteError('invalid_input', `rank is for fit: interchange. By ${method} it follows from the classes.`);
  return { kind: 'fit', method, ...(rank !== undefined && { rank }) };
}

type GivenDirection = Extract<CausalQuestion['direction'], { kind: 'given' }>;

/** The direction of a probe, with the rows that it was trained on, which are not tested on. */
export function probeDirection(probe: Probe, capture: Capture, notes: string[]): GivenDirection {
  const seen = seenRows(probe, capture);
  if (seen.length > 0)
    notes.push(
      `The probe was trained on ${seen.length} of the ${capture.prompts.length} prompts: it is tested on the others.`,
    );
  const [vector = probe.direction, ...others] = probe.basis ?? [];
  return {
    kind: 'given',
    vector: Array.from(vector),
    ...(others.length > 0 && { others: others.map((other) => Array.from(other)) }),
    source: `probe ${probe.id}`,
    ...(seen.length > 0 && { trainedOn: seen }),
  };
}

/** The span of several probes: none of the rows that any of them was trained on is tested. */
function spanDirection(probes: readonly Probe[], capture: Capture, notes: string[]): CausalQuestion['direction'] {
  const given = probes.map((probe) => probeDirection(probe, capture, notes));
  const [first, ...others] = given;
  if (!first) throw new CuvetteError('internal', 'A subspace needs a probe.');
  if (others.length === 0) return first;
  const trainedOn = [...new Set(given.flatMap((one) => one.trainedOn ?? []))].sort((a, b) => a - b);
  return {
    kind: 'given',
    vector: first.vector,
    others: [...(first.others ?? []), ...others.flatMap(({ vector, others: more = [] }) => [vector, ...more])],
    source: `probes ${probes.map(({ id }) => id).join(', ')}`,
    ...(trainedOn.length > 0 && { trainedOn }),
  };
}

async function matchedSet(
  { store }: LabResources,
  captureId: string,
  labels: Label[] | undefined,
  classes: readonly string[] | undefined,
) {
  return labelledRows(await store.captures.get(captureId), labels, classes).dataset;
}

/** Converts doses: for callers the unit is the norm of the probe's direction, for the protocol that of the residual stream. */
function sweepOf(values: number[], unit: 'absolute' | 'swing' | 'norm', length: number): CausalQuestion['sweep'] {
  return { values: unit === 'absolute' ? values.map((value) => value * length) : values, unit };
}
