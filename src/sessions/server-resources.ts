/** Holds what all sessions of a server share: the managed environment, the zygotes, the session store, the limits. */

import { join } from 'node:path';
import type { Config } from '../config.ts';
import { createEnvironment, type Environment, zygoteSpec } from '../interpreters/python/environment.ts';
import { createZygotes, PROGRAMS, type ZygoteSpec, type Zygotes } from '../interpreters/python/zygotes.ts';
import { type Paths, runtimeFolder } from '../paths.ts';
import type { ProgramSettings } from './interpreter-pool.ts';
import type { SessionLimits } from './session.ts';
import { openSessionStore, type SessionStore } from './session-store.ts';

export interface ServerResources {
  readonly paths: Paths;
  readonly runtime: string;
  readonly environment: Environment;
  readonly zygotes: Zygotes;
  readonly limits: SessionLimits;
  readonly programs: ProgramSettings;
  readonly linger: number;
  /** Opened when it is first needed. */
  store(): SessionStore;
  /** The zygote that keepers of programs come from. */
  programZygote(): Promise<ZygoteSpec>;
  /** Makes the builtin interpreter ready ahead of the first call, with these zygotes if not with its own. */
  warmUp(zygotes?: Zygotes): Promise<void>;
  close(): void;
}

export function createServerResources(options: {
  config: Config;
  paths: Paths;
  env?: NodeJS.ProcessEnv;
  /** The managed one if not given, which is made where it is missing. */
  environment?: Environment;
}): ServerResources {
  const { config, paths } = options;
  const runtime = runtimeFolder(paths.runtime);
  const ending = new AbortController();
  const environment =
    options.environment ??
    createEnvironment({
      cache: paths.cache,
      python: config.python,
      preload: config.preload,
      signal: ending.signal,
    });
  const zygotes = createZygotes(runtime, options.env);
  let opened: SessionStore | undefined;
  const { timeout, outputLimit, maxOutput, autoInstall } = config;
  const megabyte = 1 << 20;
  return {
    paths,
    runtime,
    environment,
    zygotes,
    limits: { timeout, outputLimit, maxOutput, autoInstall },
    programs: {
      cache: join(paths.cache, 'programs'),
      strict: config.bashStrict,
      limits: {
        ...(config.programMemory > 0 && { memory: config.programMemory * megabyte }),
        ...(config.programCpu > 0 && { cpu: config.programCpu }),
      },
    },
    linger: config.linger,
    store() {
      opened ??= openSessionStore(paths.data);
      return opened;
    },
    async programZygote() {
      return { python: zygoteSpec(await environment.state()).python, preload: PROGRAMS };
    },
    async warmUp(warmed = zygotes) {
      await warmed.prepare(zygoteSpec(await environment.state()));
      environment.onProgress((next) => {
        if (next.phase === 'ready') warmed.prepare(zygoteSpec(next)).catch(() => {});
      });
    },
    close() {
      ending.abort();
      zygotes.close();
      opened?.close();
    },
  };
}
