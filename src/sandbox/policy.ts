/** Describes what code in a session may do, as data from which confinement is made, here and in the driver. */

import { totalmem } from 'node:os';
import type { Config } from '../config.ts';

/** Whom root turns into before it runs anything of others: a number that no user of the machine has. */
export const USER_IN_PLACE_OF_ROOT = 968_331;

export interface Policy {
  /** `none`: only what runs in the session itself. `proxy`: the hosts of a list. */
  network: 'none' | 'proxy' | 'allow';
  /** For each session; 0 means no limit. */
  limits: {
    /** Bytes, of all processes together. */
    memory: number;
    /** Processes and threads. */
    processes: number;
    /** Processors: their number as programs see it, and their share. */
    cpus: number;
    openFiles: number;
    /** Bytes in the workspace, the home and /tmp together. */
    disk: number;
    /** Files and folders there. */
    fileCount: number;
  };
}

export function policyOf(config: Config): Policy {
  const { network } = config;
  return {
    network: network === 'none' || network === 'allow' ? network : 'proxy',
    limits: {
      memory: Math.min(config.sessionMemory, totalmem()),
      processes: config.sessionProcesses,
      cpus: config.sessionCpus,
      openFiles: config.sessionOpenFiles,
      disk: config.sessionQuota,
      fileCount: config.sessionFileCount,
    },
  };
}
