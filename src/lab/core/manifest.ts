/** Makes manifests: a hash of an experiment, which is the same wherever and whenever the experiment is run, and a second hash for each call. */

import { createHash } from 'node:crypto';
import * as z from 'zod';

/** An experiment without anything that differs from run to run. Names that users choose are replaced by hashes of their content. */
export interface Experiment {
  tool: string;
  inputs: Record<string, unknown>;
  outputs: Record<string, unknown>;
  /** The program, the model, the data and the seed. */
  config: Record<string, unknown>;
}

export const manifestSchema = z.object({
  tool: z.string(),
  manifest_sha256: z.string(),
  audit_sha256: z.string(),
  time: z.string(),
  call_id: z.string(),
  inputs_sha256: z.string(),
  outputs_sha256: z.string(),
  config: z.record(z.string(), z.unknown()),
});

export type Manifest = z.infer<typeof manifestSchema>;

export function createManifest(experiment: Experiment, call: { time: string; id: string }): Manifest {
  const { tool, config } = experiment;
  const hashes = { inputs_sha256: hashOf(experiment.inputs), outputs_sha256: hashOf(experiment.outputs) };
  const manifest = hashOf({ tool, ...hashes, config });
  return {
    tool,
    manifest_sha256: manifest,
    audit_sha256: hashOf({ manifest, time: call.time, call_id: call.id }),
    time: call.time,
    call_id: call.id,
    ...hashes,
    config,
  };
}

/** SHA-256 of the value as canonical JSON. */
export function hashOf(value: unknown): string {
  return createHash('sha256').update(canonicalJson(value)).digest('hex');
}

/** SHA-256 of the numbers as they are in memory. */
export function hashOfNumbers(numbers: Float32Array): string {
  return createHash('sha256').update(float32Bytes(numbers)).digest('hex');
}

export function float32Bytes(numbers: Float32Array): Uint8Array {
  return new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength);
}

/** JSON with the keys of every object in their order, so that equal values have equal texts. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) => (isPlainObject(part) ? sorted(part) : part)) ?? 'null';
}

function sorted(part: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function isPlainObject(part: unknown): part is Record<string, unknown> {
  return typeof part === 'object' && part !== null && !Array.isArray(part);
}
