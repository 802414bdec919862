/** The lab of the HTTP service: which models its callers may open, and which of them are shown its tools. */

import type { Config } from '../config.ts';
import { admitted, createCallersLabs } from '../lab/callers-labs.ts';
import { createLabInterpreters } from '../lab/lab-interpreters.ts';
import type { Paths } from '../paths.ts';
import type { LabInterpreters } from '../sessions/interpreter-catalog.ts';
import type { Tool } from '../tools/define-tool.ts';
import { createLabTools } from '../tools/lab.ts';
import { WORKSPACE_FILES } from '../tools/lab-files.ts';
import type { LabListing } from '../tools/lab-listing.ts';

export interface HttpLab {
  tools: readonly Tool[];
  listingOf(caller: string): LabListing;
  interpretersOf(caller: string): LabInterpreters;
  close(): Promise<void>;
}

/** Nothing where callers may open no model, or where the operator wants no lab. */
export function openHttpLab(options: {
  config: Config;
  paths: Paths;
  /** What the operator's relative paths are meant from. */
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
  const shown = new Set<string>();
  return {
    tools: createLabTools({
      labsOf: ({ caller }) => {
        if (caller === undefined) throw new Error('A call of the lab over HTTP has no caller.');
        return labs.of(caller);
      },
      files: WORKSPACE_FILES,
      isShared: true,
    }),
    listingOf: (caller) => ({
      isOpen: () => tools === 'all' || shown.has(caller),
      open() {
        const isNews = tools !== 'all' && !shown.has(caller);
        shown.add(caller);
        return isNews;
      },
    }),
    interpretersOf: (caller) => createLabInterpreters(labs.of(caller)),
    close: () => labs.close(),
  };
}
