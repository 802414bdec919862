/** Appends manifests to a log, one JSON object a line, and reads the latest. */

import { CuvetteError } from '../../errors.ts';
import { appendDurably } from '../core/durable-files.ts';
import { readIfThere, whyInvalid } from '../core/json-files.ts';
import { type Manifest, manifestSchema } from '../core/manifest.ts';

export interface ManifestLog {
  append(manifest: Manifest): Promise<void>;
  /** The newest first. */
  latest(limit: number): Promise<Manifest[]>;
}

export function createManifestLog(path: string): ManifestLog {
  return {
    append: (manifest) => appendDurably(path, JSON.stringify(manifest)),
    async latest(limit) {
      const lines = ((await readIfThere(path)) ?? '').split('\n');
      const manifests: Manifest[] = [];
      for (let number = lines.length; number > 0 && manifests.length < limit; number--) {
        const value = parseLine(lines[number - 1] ?? '');
        if (value !== undefined) manifests.push(toManifest(value, `Line ${number} of ${path}`));
      }
      return manifests;
    },
  };
}

/** Undefined for an empty line, and for one that a crash cut off. */
function parseLine(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

function toManifest(value: unknown, where: string): Manifest {
  const parsed = manifestSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new CuvetteError('unreadable_file', `${where} is not a manifest: ${whyInvalid(parsed.error)}`, {
    cause: parsed.error,
  });
}
