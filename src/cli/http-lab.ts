/** Opens the lab of the HTTP service: decides which models its callers may attach, and which callers are shown its tools. */

import type { Config } from '../config.ts';
import { admitted, createCallersLabs } from '../lab/labs/callers-labs.ts';
import { createLabInterpreters } from '../lab/labs/lab-interpreters.ts';
import type { Paths } from '../paths.ts';
import type { LabInterpreters } from '../sessions/interpreter-catalog.ts';
import { WORKSPACE_FILES } from '../tools/caller-files.ts';
import type { Tool } from '../tools/define-tool.ts';
import { createLabListing, createLabTools, type LabListing } from '../tools/lab.ts';

export interface HttpLab {
  tools: readonly Tool[];
  listingOf(caller: string): LabListing;
  interpretersOf(caller: string): LabInterpreters;
  close(): Promise<void>;
}

/** Returns nothing where callers may attach no model, or where the operator wants no lab. */
export function openHttpLab(options: {
  config: Config;
  paths: Paths;
  /** The folder from which the operator's relative paths are resolved. */
  project: string;
  /** Whether callers are programs of this machine. */
  isOpen: boolean;
}): HttpLab | undefined {
  const { config, paths, project, isOpen } = options;
  const { tools } = config;
  const endpoints = admitted(config.labEndpoints, isOpen);
  const admitsUrls = isOpen && config.labEndpoints === undefined;
  if (tools === 'code' || (endpoints.length === 0 && !admitsUrls)) return undefined;
  const labs = createCallersLabs({ ...paths, project, store: config.store, endpoints, admitsUrls });
  const listings = new Map<string, LabListing>();
  return {
    tools: createLabTools({
      labsOf: ({ caller }) => {
        if (caller === undefined) throw new Error('A call of the lab over HTTP has no caller.');
        return labs.of(caller);
      },
      files: WORKSPACE_FILES,
      isShared: true,
    }),
    listingOf(caller) {
      const listing = listings.get(caller) ?? createLabListing(tools);
      listings.set(caller, listing);
      return listing;
    },
    interpretersOf: (caller) => createLabInterpreters(labs.of(caller)),
    close: () => labs.close(),
  };
}
