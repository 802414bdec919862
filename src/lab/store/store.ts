/** Opens the store of one model, in a folder named after the hashes of its weights and tokenizer: captures, probes, protocol records, manifests. */

import { join } from 'node:path';
import { privateFolder } from '../../paths.ts';
import { writeDurably } from '../core/durable-files.ts';
import type { ModelDescription } from '../core/engine.ts';
import { hashOf } from '../core/manifest.ts';
import { type CaptureStore, createCaptureStore } from './captures.ts';
import { createFamily, type Family } from './family.ts';
import { createManifestLog, type ManifestLog } from './manifests.ts';
import { createProbeStore, type ProbeStore } from './probes.ts';

export interface LabStore {
  folder: string;
  captures: CaptureStore;
  probes: ProbeStore;
  manifests: ManifestLog;
  family: Family;
  /** Keeps the record of a run of the protocol; says where. */
  saveRecord(name: string, record: unknown): Promise<string>;
}

const GIB = 1024 ** 3;

export function openLabStore(
  folder: string,
  model: ModelDescription,
  { mostBytes = 4 * GIB }: { mostBytes?: number } = {},
): LabStore {
  const place = privateFolder(join(folder, hashOf([model.weights, model.tokenizer]).slice(0, 16)));
  return {
    folder: place,
    captures: createCaptureStore(join(place, 'captures'), mostBytes),
    probes: createProbeStore(join(place, 'probes')),
    manifests: createManifestLog(join(place, 'manifests.jsonl')),
    family: createFamily(place),
    async saveRecord(name, record) {
      const path = join(place, 'records', `${name}.json`);
      await writeDurably(path, JSON.stringify(record));
      return path;
    },
  };
}
