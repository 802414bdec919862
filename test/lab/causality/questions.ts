/** Makes questions about the plain model, and answers them with the protocol. */

import { decide } from '../../../src/lab/causality/decide.ts';
import { type ProtocolContext, runProtocol } from '../../../src/lab/causality/protocol.ts';
import type { CausalQuestion } from '../../../src/lab/causality/question.ts';
import { axis, createPlainEngine, NEUTRAL, plainPairs } from './plain-engine.ts';

export function ask(changes: Partial<CausalQuestion> = {}): CausalQuestion {
  return {
    site: { layer: 0, place: 'resid_post', position: -1 },
    direction: { kind: 'given', vector: axis('concept') },
    dataset: plainPairs(12),
    target: { positive: ['yes'], negative: ['no'] },
    neutralPrompts: NEUTRAL,
    seed: 1,
    ...changes,
  };
}

export function context(changes: Partial<ProtocolContext> = {}): ProtocolContext {
  return { signal: new AbortController().signal, family: 1, version: '0.0.0', ...changes };
}

const answers = new Map<string, ReturnType<typeof answerAnew>>();

/** Answers a question about the plain model, once for all tests of a file: each answer takes thousands of runs. */
export function answer(changes: Partial<CausalQuestion> = {}) {
  const key = JSON.stringify(changes);
  const known = answers.get(key) ?? answerAnew(changes);
  answers.set(key, known);
  return known;
}

export async function answerAnew(changes: Partial<CausalQuestion> = {}) {
  const evidence = await runProtocol(createPlainEngine(), ask(changes), context());
  return { evidence, verdict: decide(evidence) };
}
