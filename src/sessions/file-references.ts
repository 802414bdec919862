/** Finds the stored files that a call refers to: those that its caller may use, without those that code has removed since. */

import type { FileStore, StoredFile } from '../files/file-store.ts';
import { type FileUser, mayUse, type Resource } from '../files/sharing.ts';

export interface FileReference {
  id: string;
  /** Where it belongs in the workspace; its own name if not given. */
  name?: string | undefined;
  /** The agent or the skill that it belongs to. */
  resource?: Resource | undefined;
  /**
   * The client sends with each call what earlier ones came with and gave back, and understands `inherited`. LibreChat does
   * since 0.8.6; before, it takes every file of an answer for a new one.
   */
  isCarried: boolean;
}

export interface ReferredFile {
  file: StoredFile;
  name: string;
  reference: FileReference;
}

export interface FileReferences {
  /** In the order of the call, with a sentence on each that is not found. */
  find(references: FileReference[], user: FileUser): { found: ReferredFile[]; problems: string[] };
  /** Notes that code has removed files of these names, so that the client's next call does not bring them back. */
  noteRemovals(referred: ReferredFile[], gone: string[]): void;
}

/** How many uses of shared files are remembered. */
const MOST_GRANTS = 10_000;

export function createFileReferences(files: FileStore): FileReferences {
  /** Owners with shared files that they have used: LibreChat names the agent only in the first of several calls. */
  const grants = new Set<string>();

  function isAllowed(file: StoredFile, user: FileUser, resource: Resource | undefined): boolean {
    const grant = JSON.stringify([user.owner, file.id]);
    if (!mayUse(file, user, resource)) return grants.has(grant);
    if (file.owner === user.owner) return true;
    grants.delete(grant);
    grants.add(grant);
    const [oldest] = grants;
    if (grants.size > MOST_GRANTS && oldest !== undefined) grants.delete(oldest);
    return true;
  }

  return {
    find(references, user) {
      const problems: string[] = [];
      const found = references.flatMap((reference) => {
        const file = files.find(reference.id);
        const name = reference.name ?? file?.name;
        if (!file || name === undefined || !isAllowed(file, user, reference.resource)) {
          problems.push(`The file ${reference.name ?? reference.id} is no longer kept here; upload it again.`);
          return [];
        }
        if (isOfOneConversation(file, reference) && files.isRemoved(file, name)) {
          problems.push(
            `The file ${name} was removed by an earlier call; GET /sessions/${file.session}/objects/${file.id} lets it be used again.`,
          );
          return [];
        }
        return [{ file, name, reference }];
      });
      return { found, problems };
    },
    noteRemovals(referred, gone) {
      for (const { file, name, reference } of referred)
        if (isOfOneConversation(file, reference) && gone.includes(name)) files.noteRemoval(file, name);
    },
  };
}

/** Files of an agent or a skill are in use by many conversations at once: what the code of one does is nothing to the others. */
function isOfOneConversation({ sharedAs }: StoredFile, { isCarried, resource }: FileReference): boolean {
  return isCarried && !resource && sharedAs === undefined;
}
