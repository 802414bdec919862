/** Reads records of protocol runs and of sweeps, from a tool's answer or from a file, and draws their sections by the code of the reports. */

import { anyRecordSchema, type ProtocolRecord } from '../../src/lab/causality/verdict.ts';
import { reportSections } from '../../src/lab/report/report-sections.ts';
import { sweepSections } from '../../src/lab/report/sweep-sections.ts';
import { titleOf, VERDICT_NAMES } from '../../src/lab/report/verdict-names.ts';
import { type SweepRecord, sweepRecordSchema } from '../../src/lab/site-sweep/sweep-record.ts';

export type LabRecord = { kind: 'protocol'; record: ProtocolRecord } | { kind: 'sweep'; record: SweepRecord };

export function readRecord(value: unknown): LabRecord {
  if (typeof value === 'object' && value !== null && 'conclusion' in value)
    return { kind: 'sweep', record: sweepRecordSchema.parse(value) };
  const { evidence, ...rest } = anyRecordSchema.parse(value);
  if (evidence.format !== 3)
    throw new Error(`This is evidence of format ${evidence.format}, which an earlier version of Cuvette draws.`);
  return { kind: 'protocol', record: { ...rest, evidence } };
}

export function drawRecord(kept: LabRecord): string {
  return kept.kind === 'sweep' ? sweepSections(kept.record).markup : reportSections(kept.record).markup;
}

/** `Causal: plural subject (layer 3, last token)`. */
export function nameRecord(kept: LabRecord): string {
  if (kept.kind === 'sweep') return `Sweep of ${kept.record.evidence.model.id}: ${kept.record.conclusion.state}`;
  const { record } = kept;
  return `${VERDICT_NAMES[record.verdict.verdict]}: ${titleOf(record)}`;
}
