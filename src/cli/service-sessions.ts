/** Opens the sessions of a service by its settings: where their folders are, and how their code is confined. */

import { join } from 'node:path';
import type { Config } from '../config.ts';
import { zygoteSpec } from '../interpreters/python/environment.ts';
import { probeWorkspaceMount } from '../interpreters/python/workspace-mount.ts';
import { isLoopback } from '../loopback.ts';
import { ownFolder } from '../paths.ts';
import type { LabInterpreters } from '../sessions/interpreter-catalog.ts';
import type { ServerResources } from '../sessions/server-resources.ts';
import { createSharedSessions, type SharedSessions } from '../sessions/shared-sessions.ts';
import { openConfinement } from './confinement.ts';

export interface ServiceSessions {
  shared: SharedSessions;
  /** Says in a sentence how they are confined. */
  description: string;
  /** The PATH of confined code; undefined if code is not confined. */
  searchPath: string | undefined;
  close(isLeaving: boolean): Promise<void>;
}

/**
 * Returns the folders of workspaces and of files. A folder that the user has named holds both; others may read it, as `mkdir -p`
 * makes it, but what is made in it is closed to them.
 */
export function serviceFolders({ uploadsDir, notebooksDir }: Config, data: string) {
  if (notebooksDir) ownFolder(notebooksDir);
  if (!uploadsDir) return { root: join(data, 'files'), files: join(data, 'files'), workspaces: join(data, 'sessions') };
  const root = ownFolder(uploadsDir);
  return { root, files: join(root, '.files'), workspaces: root };
}

export async function openServiceSessions(options: {
  config: Config;
  resources: ServerResources;
  /** Whose files are kept under an id, if any. */
  ownerOf?(id: string): string | undefined;
  onRemoved?(id: string): void;
  /** Interpreters of the labs that an owner has attached. */
  labInterpretersOf?: ((owner: string) => LabInterpreters) | undefined;
}): Promise<ServiceSessions> {
  const { config, resources, labInterpretersOf, ownerOf, onRemoved } = options;
  const python = await resources.environment.state().then(
    (state) => zygoteSpec(state).python,
    () => undefined,
  );
  const { workspaces } = serviceFolders(config, resources.paths.data);
  const confinement = await openConfinement({
    config,
    resources,
    python,
    sessions: workspaces,
    isOpen: !isLoopback(config.host),
  });
  const { sandbox } = confinement;
  const place =
    !sandbox && python ? await probeWorkspaceMount(python) : { isPossible: false, problem: 'there is no Python' };
  const description =
    sandbox || place.isPossible
      ? confinement.description
      : `${confinement.description}; code sees /mnt/data elsewhere (${place.problem})`;
  const shared = createSharedSessions({
    resources,
    mountsWorkspace: place.isPossible,
    sandbox,
    folder: workspaces,
    most: config.maxSessions,
    idle: config.sessionIdle,
    age: config.sessionAge,
    keep: config.keepFiles,
    ...(labInterpretersOf && { labInterpretersOf }),
    ...(ownerOf && { ownerOf }),
    ...(onRemoved && { onRemoved }),
  });
  return {
    shared,
    description,
    searchPath: sandbox?.searchPath,
    async close(isLeaving) {
      await shared.close(isLeaving);
      await confinement.close();
    },
  };
}
