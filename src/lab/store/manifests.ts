/** The manifests of a lab, in the order of their calls: one a line, never changed. */

import { appendDurably } from '../core/durable-files.ts';
import { type Manifest, manifestSchema } from '../core/manifest.ts';
import { readIfThere } from './read-if-there.ts';

export interface ManifestLog {
  append(manifest: Manifest): Promise<void>;
  /** The newest first. */
  latest(limit: number): Promise<Manifest[]>;
}

export function createManifestLog(path: string): ManifestLog {
  return {
    append: (manifest) => appendDurably(path, JSON.stringify(manifest)),
    async latest(limit) {
      const text = await readIfThere(path);
      const lines = text === undefined ? [] : text.split('\n').filter(Boolean).reverse();
      const manifests: Manifest[] = [];
      for (const line of lines) {
        if (manifests.length === limit) break;
        const manifest = parse(line);
        if (manifest) manifests.push(manifest);
      }
      return manifests;
    },
  };
}

/** A line that a crash cut off is none. */
function parse(line: string): Manifest | undefined {
  try {
    return manifestSchema.parse(JSON.parse(line));
  } catch {
    return undefined;
  }
}
