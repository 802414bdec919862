/** Runs the protocol on models with known answers, and counts how often it is right. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { decide } from '../../../src/lab/causality/decide.ts';
import type { Evidence } from '../../../src/lab/causality/evidence.ts';
import { runProtocol } from '../../../src/lab/causality/protocol.ts';
import type { CausalQuestion } from '../../../src/lab/causality/question.ts';
import type { ProtocolRecord, VerdictName, VerdictReason } from '../../../src/lab/causality/verdict.ts';
import type { Engine } from '../../../src/lab/core/engine.ts';
import { agreementPairs, neutralPrompts } from '../../../src/lab/demo/datasets.ts';
import { readLayout } from '../../../src/lab/models/architectures/architectures.ts';
import type { Interval } from '../../../src/lab/statistics/bootstrap.ts';
import { clopperPearson } from '../../../src/lab/statistics/proportion.ts';
import { CASE_NAMES, type CaseName, makeToyQuestion } from './toy-questions.ts';
import { writeRandomTwin } from './twin.ts';

/** Has the protocol answer a question about the model in a folder. */
export type AnswerIn = (folder: string, question: CausalQuestion) => Promise<Answered>;

type Answered = Pick<ProtocolRecord, 'evidence' | 'verdict'>;

export interface GroundTruthOptions {
  seeds: readonly number[];
  cases?: readonly CaseName[];
  /** More seeds for the case without signal, which count for the false positives only. */
  noiseSeeds?: readonly number[];
  /** The folder of a trained model: its random-weights twin is asked, too. */
  twinOf?: string;
  answer: AnswerIn;
  onRun?(run: GroundTruthRun): void;
}

export interface GroundTruthRun {
  case: CaseName | 'twin';
  seed: number;
  verdict: VerdictName;
  reason: VerdictReason;
  /** Whether the verdict is right, and whether its reason is the right one, too. A twin has no right reason. */
  correct: boolean;
  rightReason: boolean;
  evidence: Evidence;
}

export interface GroundTruthResult {
  runs: number;
  correct: number;
  rightReasons: number;
  /** By case, then by verdict. */
  confusion: Map<GroundTruthRun['case'], Map<VerdictName, number>>;
  /** Verdicts other than undetermined where labels mean nothing, with the interval of Clopper and Pearson. */
  falsePositives: { count: number; of: number; interval: Interval };
}

export async function runGroundTruth(options: GroundTruthOptions): Promise<GroundTruthResult> {
  const { seeds, cases = CASE_NAMES, noiseSeeds = [], twinOf, answer } = options;
  const runs: GroundTruthRun[] = [];
  const keep = (run: GroundTruthRun) => {
    options.onRun?.(run);
    return run;
  };
  for (const name of cases) {
    for (const seed of seeds) runs.push(keep(await runCase(name, seed, answer)));
  }
  if (twinOf !== undefined) {
    for (const seed of seeds) runs.push(keep(await runTwin(twinOf, seed, answer)));
  }
  const noise = runs.filter((run) => run.case === 'noise');
  for (const seed of noiseSeeds) noise.push(keep(await runCase('noise', seed, answer)));

  const confusion: GroundTruthResult['confusion'] = new Map();
  for (const run of runs) {
    const verdicts = confusion.get(run.case) ?? new Map<VerdictName, number>();
    confusion.set(run.case, verdicts.set(run.verdict, (verdicts.get(run.verdict) ?? 0) + 1));
  }
  const found = noise.filter((run) => run.verdict !== 'undetermined').length;
  return {
    runs: runs.length,
    correct: runs.filter((run) => run.correct).length,
    rightReasons: runs.filter((run) => run.rightReason).length,
    confusion,
    falsePositives: { count: found, of: noise.length, interval: clopperPearson(found, noise.length) },
  };
}

export async function runCase(name: CaseName, seed: number, answer: AnswerIn): Promise<GroundTruthRun> {
  return inFolder(async (folder) => {
    const { question, ...truth } = makeToyQuestion(folder, name, seed);
    const found = outcomeOf(await answer(folder, question));
    const correct = found.verdict === truth.verdict;
    return { case: name, seed, ...found, correct, rightReason: correct && found.reason === truth.reason };
  });
}

/** A network that has learned nothing carries its input along like any other. No direction of it may be called causal. */
async function runTwin(model: string, seed: number, answer: AnswerIn): Promise<GroundTruthRun> {
  return inFolder(async (folder) => {
    writeRandomTwin(model, folder, seed);
    const question: CausalQuestion = {
      site: { layer: readLayout(folder).spec.layers >> 1, place: 'resid_post', position: -1 },
      direction: { kind: 'fit', method: 'difference-of-means' },
      dataset: agreementPairs(seed, 32),
      neutralPrompts: neutralPrompts(seed, 24),
      seed,
    };
    const found = outcomeOf(await answer(folder, question));
    const correct = found.verdict !== 'causal';
    return { case: 'twin', seed, ...found, correct, rightReason: correct };
  });
}

function outcomeOf({ evidence, verdict: { verdict, reason } }: Answered) {
  return { verdict, reason, evidence };
}

/** Answers in this process, by an engine that is opened for each question. */
export function askEngine(
  engineFor: (folder: string) => Promise<Engine>,
  { version, signal }: { version: string; signal: AbortSignal },
): AnswerIn {
  return async (folder, question) => {
    const engine = await engineFor(folder);
    try {
      const evidence = await runProtocol(engine, question, { signal, family: 1, version });
      return { evidence, verdict: decide(evidence) };
    } finally {
      await engine.close();
    }
  };
}

async function inFolder<T>(use: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'cuvette-ground-truth-'));
  try {
    return await use(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
