/** Runs as a worker thread that holds a model and answers requests one after the other. */

import { parentPort, type TransferListItem, workerData } from 'node:worker_threads';
import { toCuvetteError } from '../../../errors.ts';
import { readLayout } from '../../models/architectures/architectures.ts';
import { openWeightFiles } from '../../models/weight-files.ts';
import { weightTensors } from '../../models/weights.ts';
import { generate } from './generate.ts';
import type { EngineAnswer, EngineWorkerData, Work, WorkerMessage, WorkMessage } from './messages.ts';
import { createModel, type Model } from './model.ts';
import { run } from './run.ts';
import { createSaeEncoders } from './sae-encoders.ts';

const { folder, ...machine }: EngineWorkerData = workerData;
let aborted: Int32Array = new Int32Array(1);

try {
  const { model, scratch } = loadModel();
  const encoders = createSaeEncoders(model.heap, model.program, checkAborted);
  parentPort?.on('message', (message: WorkMessage) => {
    aborted = message.aborted;
    reply(message.id, () => perform(model, encoders, message.work));
  });
  tell({ kind: 'ready', scratch });
} catch (error) {
  fail(error);
}

function loadModel(): ReturnType<typeof createModel> {
  const { spec, tensors } = readLayout(folder);
  const files = openWeightFiles(folder);
  try {
    return createModel({ spec, tensors: weightTensors(files, tensors) }, { ...machine, checkAborted });
  } finally {
    files.close();
  }
}

function perform(model: Model, encoders: ReturnType<typeof createSaeEncoders>, work: Work): EngineAnswer {
  checkAborted();
  model.program.clear();
  switch (work.do) {
    case 'run':
      return { run: run(model, work.request) };
    case 'generate':
      return { generate: generate(model, work.request) };
    case 'encode':
      if (work.contents) encoders.add(work.sae, work.contents);
      if (!encoders.has(work.sae)) return { missing: 'sae' };
      return { encode: encoders.encode(work.sae, work.rows) };
  }
}

function reply(id: number, make: () => EngineAnswer): void {
  try {
    const answer = make();
    tell({ kind: 'answer', id, answer }, buffersOf(answer));
  } catch (error) {
    fail(error, id);
  }
}

function tell(message: WorkerMessage, transfer: TransferListItem[] = []): void {
  parentPort?.postMessage(message, transfer);
}

function fail(error: unknown, id?: number): void {
  const { code, message } = toCuvetteError(error);
  tell({ kind: 'failed', ...(id !== undefined && { id }), code, message });
}

function checkAborted(): void {
  if (Atomics.load(aborted, 0) !== 0) throw new Error('Nobody waits for it any more.');
}

/** They are handed over, not copied. */
function buffersOf(answer: EngineAnswer): TransferListItem[] {
  return arraysOf(answer).flatMap(({ buffer }) => (buffer instanceof ArrayBuffer ? [buffer] : []));
}

function arraysOf(answer: EngineAnswer): Float32Array[] {
  if ('encode' in answer) return [answer.encode];
  if (!('run' in answer)) return [];
  return answer.run.flatMap(({ activations, logits, surprise }) => [
    ...activations,
    ...(logits ? [logits] : []),
    ...(surprise ? [surprise.logProbabilities, surprise.divergences] : []),
  ]);
}
