/** `cuvette mcp`: serves one agent over stdio, and its shells over the bridge. */

import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import type { Config } from '../config.ts';
import { createLabInterpreters } from '../lab/lab-interpreters.ts';
import { createLabs } from '../lab/labs.ts';
import { createLog } from '../log.ts';
import { findPaths, type Paths, runtimeFolder } from '../paths.ts';
import type { ServerResources } from '../sessions/server-resources.ts';
import type { Sessions } from '../sessions/sessions.ts';
import type { Bridge } from '../surfaces/bridge/listen.ts';
import { createMcpServer } from '../surfaces/mcp/server.ts';
import { createLabTools } from '../tools/lab.ts';
import { projectFiles } from '../tools/lab-files.ts';
import { createLabListing } from '../tools/lab-listing.ts';
import type { OpenConfinement } from './confinement.ts';
import { parseServerFlags } from './flags.ts';
import { shellCommand } from './shell-command.ts';

interface Confined {
  resources: ServerResources;
  confinement: OpenConfinement;
}

/** The agent's first question comes at once, and is answered before anything slow begins. */
const FIRST_ANSWER = 30;

export async function main(args: string[]): Promise<number | undefined> {
  const { config, project } = parseServerFlags(args);
  const log = createLog(config.logLevel);
  const paths = findPaths();
  runtimeFolder(paths.runtime); // One that cannot be used is told at once.
  const failed = (error: unknown) => {
    log.warn({ err: error }, 'start');
    return null;
  };
  const labs = createLabs({ ...paths, project, store: config.store });
  const labInterpreters = createLabInterpreters(labs);
  let confined: Confined | undefined;
  const openSessions = async () => {
    const { createSessions } = await import('../sessions/sessions.ts');
    if (config.sandbox !== 'on') return createSessions({ config, paths, project, labInterpreters });
    confined = await confine(config, paths, project);
    return createSessions({ config, paths, project, labInterpreters, ...confined });
  };
  let opened: Promise<Sessions> | undefined;
  const sessions = () => {
    opened ??= openSessions().then((held) => Object.assign(held, { socketPath }));
    return opened;
  };
  const labTools = createLabTools({ labsOf: () => labs, files: projectFiles(project) });
  const { tools, structured } = config;
  const lab = tools === 'code' ? undefined : { tools: labTools, listing: createLabListing(tools) };
  const options = { sessions, log, lab, structured, shellCommand: shellCommand() };
  const stdio = serveStdio(() => createMcpServer(options), { onerror: (error) => log.warn({ err: error }, 'mcp') });

  let bridge: Bridge | undefined;
  const listen = async () => {
    await sleep(FIRST_ANSWER);
    const { openBridge } = await import('../surfaces/bridge/listen.ts');
    bridge = await openBridge({ sessions: await sessions(), runtime: paths.runtime, kind: 'agent', log, labTools });
    return bridge.socket;
  };
  const socketPath = listen().catch(failed);
  socketPath.then(async () => (await sessions()).warmUp()).catch(failed);

  await new Promise<void>((resolve) => {
    process.stdin.once('end', resolve);
    process.stdin.once('close', resolve);
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, resolve);
  });
  bridge?.close();
  await opened?.then((held) => held.close()).catch(failed);
  await confined?.confinement.close();
  confined?.resources.close();
  await labs.close();
  await stdio.close();
  process.exit(0);
}

/** To the project's folder: code of this agent sees no other file of the user's. */
async function confine(config: Config, paths: Paths, project: string): Promise<Confined> {
  const [{ openConfinement }, { createServerResources }, { zygoteSpec }] = await Promise.all([
    import('./confinement.ts'),
    import('../sessions/server-resources.ts'),
    import('../interpreters/python/environment.ts'),
  ]);
  const resources = createServerResources({ config, paths });
  const { python } = zygoteSpec(await resources.environment.state());
  const sessions = join(paths.data, 'sessions');
  const confinement = await openConfinement({ config, resources, python, sessions, project, isOpen: false });
  return { resources, confinement };
}
