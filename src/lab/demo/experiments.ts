/** Runs whole experiments with the lab's tools, as an agent does. */

import type { CausalQuestion, DatasetRow } from '../causality/question.ts';
import { type ProtocolRecord, protocolRecordSchema } from '../causality/verdict.ts';
import { formatHookPoint } from '../core/hook-points.ts';
import type { DemoQuestion } from './questions.ts';

/** Calls a tool of the lab that is asked. */
export type CallTool = (tool: string, args: Record<string, unknown>) => Promise<Record<string, unknown>>;

export interface ExperimentResult {
  /** All that the protocol's tool answered. */
  answer: Record<string, unknown>;
  record: ProtocolRecord;
}

/** One of the shipped model's questions: trains a probe on some prompts, and asks about it on others. */
export async function askDemoQuestion(call: CallTool, question: DemoQuestion, seed: number): Promise<ExperimentResult> {
  const { name, title, layer, position, training, dataset, structureMatched, target } = question;
  const capture = (rows: readonly DatasetRow[]) => captureRows(call, rows, { layers: [layer], positions: [position] });
  const trained = { probe_id: name, capture_id: await capture(training), layer, position };
  await call('train_probe', { ...trained, method: 'difference-of-means', held_out: 0, seed });
  return askProtocol(call, {
    probe_id: name,
    capture_id: await capture(dataset),
    ...(structureMatched && { structure_matched_capture_id: await capture(structureMatched) }),
    positive_tokens: target.positive,
    negative_tokens: target.negative,
    feature_name: title,
    seed,
  });
}

/** What the tools can be asked in one go; they know by themselves what a probe was trained on. */
type Asked = Pick<
  CausalQuestion,
  'site' | 'direction' | 'dataset' | 'structureMatched' | 'target' | 'neutralPrompts' | 'seed'
>;

/** Captures the data of a question, and gives the lab its direction or leaves it to be found there. */
export async function askQuestion(call: CallTool, question: Asked): Promise<ExperimentResult> {
  const { site, direction, dataset, structureMatched, target, neutralPrompts, seed } = question;
  const layer = formatHookPoint(site);
  const capture = (rows: readonly DatasetRow[]) =>
    captureRows(call, rows, { layers: [layer], positions: [site.position] });
  const probe_id = 'asked';
  if (direction.kind === 'given')
    await call('load_probe', { probe_id, direction: direction.vector, layer, position: site.position });
  return askProtocol(call, {
    ...(direction.kind === 'given' ? { probe_id } : { fit: direction.method, rank: direction.rank }),
    capture_id: await capture(dataset),
    ...(structureMatched && { structure_matched_capture_id: await capture(structureMatched) }),
    ...(target && { positive_tokens: target.positive, negative_tokens: target.negative }),
    ...(neutralPrompts && { neutral_prompts: neutralPrompts }),
    seed,
  });
}

/** The id of a capture of these rows. */
export async function captureRows(
  call: CallTool,
  rows: readonly DatasetRow[],
  args: Record<string, unknown>,
): Promise<unknown> {
  const hasAll = (key: 'pair' | 'template') => rows.every((row) => row[key] !== undefined);
  const answer = await call('capture_acts', {
    prompts: rows.map(({ prompt }) => prompt),
    labels: rows.map(({ label }) => label),
    ...(hasAll('pair') && { pair_ids: rows.map(({ pair }) => pair) }),
    ...(hasAll('template') && { template_ids: rows.map(({ template }) => template) }),
    ...args,
  });
  return answer.capture_id;
}

async function askProtocol(call: CallTool, args: Record<string, unknown>): Promise<ExperimentResult> {
  const answer = await call('causality_protocol', { ...args, include_evidence: true });
  return { answer, record: protocolRecordSchema.parse(answer.record) };
}
