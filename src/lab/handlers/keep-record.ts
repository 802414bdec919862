/** Keeps the record of a question to the lab: as a file of the store, with its manifest. */

import type { ProtocolRecord } from '../causality/verdict.ts';
import type { SweepRecord } from '../site-sweep/sweep-record.ts';
import { type LabResources, manifestFor } from './resources.ts';

/** What was concluded goes into the manifest under the name that it has in the record. Returns what the answer tells of it. */
export async function keepRecord<Kept extends ProtocolRecord | SweepRecord>(
  resources: LabResources,
  tool: string,
  record: Kept,
  concluded: Partial<Kept>,
): Promise<{ record_file: string; manifest_sha256: string }> {
  const { question, evidence } = record;
  const { model: _, ...found } = evidence;
  const manifest = manifestFor(resources, {
    tool,
    inputs: { question, question_number: evidence.multiplicity.question },
    outputs: { found, ...concluded },
    data: evidence.data.hash,
    seed: question.seed,
  });
  const hash = manifest.manifest_sha256;
  const file = await resources.store.saveRecord(hash.slice(0, 16), record);
  await resources.store.manifests.append(manifest);
  return { record_file: file, manifest_sha256: hash };
}
