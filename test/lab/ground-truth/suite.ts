/** Runs the protocol on families of known structure. What it was right about is counted by the tally. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { decide } from '../../../src/lab/causality/decide.ts';
import type { Evidence } from '../../../src/lab/causality/evidence.ts';
import { runProtocol } from '../../../src/lab/causality/protocol.ts';
import type { CausalQuestion } from '../../../src/lab/causality/question.ts';
import type { ProtocolRecord, VerdictName } from '../../../src/lab/causality/verdict.ts';
import type { Engine } from '../../../src/lab/core/engine.ts';
import type { Family, FamilyMember, Truth } from './family.ts';
import { writeModelFolder } from './models/model-folder.ts';

/** Has the protocol answer a question about the model in a folder. */
export type AnswerIn = (folder: string, question: CausalQuestion) => Promise<Answered>;

type Answered = Pick<ProtocolRecord, 'evidence' | 'verdict'>;

export interface GroundTruthRun {
  family: string;
  seed: number;
  truth: Truth;
  verdict: VerdictName;
  reason: string;
  /** `abstained`: the protocol said that it cannot tell with this much data, where there is something to tell. */
  outcome: 'right' | 'abstained' | 'wrong';
  /** Whether a right verdict has a right reason, too. */
  rightReason: boolean;
  evidence: Evidence;
}

/** Every family with every seed, one after the other. */
export async function runFamilies(
  families: readonly Family[],
  seeds: readonly number[],
  answer: AnswerIn,
  onRun: (run: GroundTruthRun) => void = () => {},
): Promise<GroundTruthRun[]> {
  const runs: GroundTruthRun[] = [];
  for (const family of families) {
    for (const seed of seeds) {
      const run = await runFamily(family, seed, answer);
      runs.push(run);
      onRun(run);
    }
  }
  return runs;
}

export async function runFamily(family: Family, seed: number, answer: AnswerIn): Promise<GroundTruthRun> {
  const { name, truth } = family;
  const { evidence, verdict } = await answerMember(family.make(seed), answer);
  return { family: name, seed, truth, ...judge(verdict, truth), evidence };
}

async function answerMember({ files, question }: FamilyMember, answer: AnswerIn): Promise<Answered> {
  const folder = mkdtempSync(join(tmpdir(), 'cuvette-ground-truth-'));
  try {
    writeModelFolder(folder, files);
    return await answer(folder, question);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

export function judge(
  { verdict, reason }: { verdict: VerdictName; reason: string },
  { verdict: expected, reasons }: Truth,
): Pick<GroundTruthRun, 'verdict' | 'reason' | 'outcome' | 'rightReason'> {
  const isRight = verdict === expected;
  const isAbstained = !isRight && verdict === 'undetermined' && ABSTAINING.includes(reason);
  return {
    verdict,
    reason,
    outcome: isRight ? 'right' : isAbstained ? 'abstained' : 'wrong',
    rightReason: isRight && (reasons?.includes(reason) ?? true),
  };
}

/** Reasons that ask for more data. */
const ABSTAINING = ['underpowered', 'insufficient-nulls'];

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
