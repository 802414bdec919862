/** Opens what a server needs to confine sessions: the sandbox, and the proxy for the hosts that code may reach. */

import { createHash } from 'node:crypto';
import { chmodSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '../config.ts';
import { CuvetteError, messageOf } from '../errors.ts';
import { LANGUAGES } from '../interpreters/process/languages.ts';
import { environmentsIn } from '../interpreters/python/environment.ts';
import { parseAllowList } from '../sandbox/allow-list.ts';
import { chooseSandbox, type SandboxChoice } from '../sandbox/choose-sandbox.ts';
import { policyOf } from '../sandbox/policy.ts';
import { openProxy } from '../sandbox/proxy.ts';
import type { ServerResources } from '../sessions/server-resources.ts';

/** Levels of folders for the compilers' shared files that Cuvette itself makes. */
const DEPTH = 2;

export interface OpenConfinement extends SandboxChoice {
  close(): Promise<void>;
}

export async function openConfinement(options: {
  config: Config;
  resources: ServerResources;
  python: string | undefined;
  /** The folder that holds the sessions' folders. */
  sessions: string;
  /** A project's folder that is the workspace itself. */
  project?: string;
  isOpen: boolean;
}): Promise<OpenConfinement> {
  const { config, resources, sessions } = options;
  const policy = policyOf(config);
  const hosts = Array.isArray(config.network) ? config.network : [];
  const mark = createHash('sha256').update(JSON.stringify(hosts)).digest('hex').slice(0, 8);
  const proxy = policy.network === 'proxy' ? join(resources.runtime, 'c', `proxy-${mark}.sock`) : undefined;
  const allow = readHosts(hosts);
  const choice = await chooseSandbox({ sandbox: config.sandbox, isOpen: options.isOpen }, options.python, {
    policy,
    runtime: resources.runtime,
    sessions,
    project: options.project,
    proxy,
    tools: await languageTools(),
    readable: [...sharedFolders(resources.programs.cache), environmentsFolder(resources.paths.cache)],
  });
  if (!choice.sandbox || !proxy) return { ...choice, close: async () => choice.sandbox?.close() };
  const { sandbox } = choice;
  rmSync(proxy, { force: true });
  const opened = await openProxy({ socket: proxy, allow });
  sandbox.give(proxy);
  return {
    ...choice,
    async close() {
      await opened.close();
      await sandbox.close();
    },
  };
}

function readHosts(hosts: string[]) {
  try {
    return parseAllowList(hosts);
  } catch (error) {
    throw new CuvetteError(
      'invalid_input',
      `The setting network (--network, CUVETTE_NETWORK) is wrong: ${messageOf(error)}`,
    );
  }
}

/** Returns the paths of the tools of installed languages. */
async function languageTools(): Promise<string[]> {
  const found = await Promise.all(LANGUAGES.map((language) => language.probe()));
  return found.flatMap((info) => ('path' in info ? [info.path] : []));
}

/** Makes the folders that builds of all sessions read and none can write. */
function sharedFolders(cache: string): string[] {
  const folders = ['cpp', 'go'].map((name) => join(cache, name));
  for (const folder of folders) {
    mkdirSync(folder, { recursive: true });
    openUp(folder, DEPTH);
  }
  return folders;
}

/** Makes the folder of all environments readable, so that a session that begins before the environment is made finds it later. */
function environmentsFolder(cache: string): string {
  const folder = environmentsIn(cache);
  mkdirSync(folder, { recursive: true, mode: 0o755 });
  chmodSync(folder, 0o755);
  return folder;
}

/** Makes folders readable to the user that code runs as; the folders above are closed to the machine's other users. */
function openUp(folder: string, depth: number): void {
  chmodSync(folder, 0o755);
  if (depth === 0) return;
  for (const entry of readdirSync(folder, { withFileTypes: true }))
    if (entry.isDirectory()) openUp(join(folder, entry.name), depth - 1);
}
