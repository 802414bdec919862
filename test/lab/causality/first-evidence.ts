/** Makes evidence of the protocol's first edition with made-up values: of a full mediator, and of a direction without effect. */

import { type FirstEvidence, firstEvidenceSchema } from '../../../src/lab/causality/first-edition.ts';
import { sampleRecord } from '../report/sample-record.ts';

export function firstEvidence(kind: 'mediator' | 'bystander' = 'mediator'): FirstEvidence {
  const { evidence } = sampleRecord(kind);
  return firstEvidenceSchema.parse({
    ...evidence,
    format: 2,
    interchange: { ...evidence.interchange, full: 0.99 },
    temperature: { mean: 1.01, low: 0.93, high: 1.08, clamped: 0 },
    multiplicity: { family: 1, tests: 3, nulls: 199, needed: 59 },
    guards: {
      onManifold: { value: 0.91, share: 0.83, reach: 0.91, rows: 120 },
      neutral: { ...evidence.specificity.neutral, divergence: kind === 'mediator' ? 0.031 : 0.2 },
    },
  });
}
