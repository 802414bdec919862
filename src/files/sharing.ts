/** Decides who may use a stored file: its owner; and, if it belongs to an agent or a skill, everybody of the same tenant who names it. */

import type { StoredFile } from './file-store.ts';

/** Who asks for a file. */
export interface FileUser {
  owner: string;
  /** The organisation that the owner belongs to, if it is known; files are shared within it alone. */
  tenant?: string | undefined;
}

/** What several users of a tenant have in common, in LibreChat's words. */
export interface Resource {
  kind: 'agent' | 'skill';
  id: string;
  /** Only skills have versions. */
  version?: string;
}

const LONGEST = 256;

/** The agent or the skill that a request names in fields of its own; undefined for all that belongs to one user. */
export function resourceOf(given: { kind?: unknown; id?: unknown; version?: unknown }): Resource | undefined {
  const id = wordOf(given.id);
  const version = wordOf(given.version);
  if (id === undefined) return undefined;
  if (given.kind === 'agent') return { kind: 'agent', id };
  return given.kind === 'skill' && version !== undefined ? { kind: 'skill', id, version } : undefined;
}

/** What a file is shared under; undefined if it is its owner's alone. */
export function sharedAs(user: FileUser, resource: Resource | undefined): string | undefined {
  if (user.tenant === undefined || !resource) return undefined;
  return JSON.stringify([user.tenant, resource.kind, resource.id, resource.version ?? null]);
}

export function mayUse(file: StoredFile, user: FileUser, resource: Resource | undefined): boolean {
  if (file.owner === user.owner) return true;
  return file.sharedAs !== undefined && file.sharedAs === sharedAs(user, resource);
}

function wordOf(value: unknown): string | undefined {
  const word = typeof value === 'number' ? String(value) : value;
  return typeof word === 'string' && word !== '' && word.length <= LONGEST ? word : undefined;
}
