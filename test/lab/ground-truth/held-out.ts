/** Reads the families that others have made, who know the verdicts' definitions and not the protocol. They are run, and not looked at. */

import type { CausalQuestion, DatasetRow } from '../../../src/lab/causality/question.ts';
import { VERDICTS } from '../../../src/lab/causality/verdict.ts';
import type { Family } from './family.ts';

export interface HeldOutFamily {
  name: string;
  truth: { verdict: string; reasons?: string[] };
  why: string;
  make(seed: number): { files: Record<string, Uint8Array | string>; question: HeldOutQuestion };
}

interface HeldOutQuestion {
  dataset: DatasetRow[];
  site: { layer: number; position: number };
  target: { positive: string[]; negative: string[] };
  direction: 'fit' | number[];
}

export function asFamily({ name, truth, why, make }: HeldOutFamily): Family {
  const verdict = VERDICTS.find((one) => one === truth.verdict);
  if (!verdict) throw new RangeError(`The family ${name} has the verdict ${truth.verdict}, which does not exist.`);
  return {
    name,
    why,
    truth: { verdict, ...(truth.reasons && { reasons: truth.reasons }) },
    make(seed) {
      const { files, question } = make(seed);
      return { files, question: asQuestion(question, seed) };
    },
  };
}

function asQuestion({ dataset, site, target, direction }: HeldOutQuestion, seed: number): CausalQuestion {
  return {
    dataset,
    site: { ...site, place: 'resid_post' },
    target,
    direction:
      direction === 'fit' ? { kind: 'fit', method: 'difference-of-means' } : { kind: 'given', vector: direction },
    seed,
  };
}
