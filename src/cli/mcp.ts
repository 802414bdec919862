/** `cuvette mcp` serves one agent over stdio, and its shells over the bridge. */

import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
import type { Config } from '../config.ts';
import { createLabInterpreters } from '../lab/labs/lab-interpreters.ts';
import { createLabs } from '../lab/labs/labs.ts';
import { createLog } from '../log.ts';
import { findPaths, type Paths, runtimeFolder } from '../paths.ts';
import type { ServerResources } from '../sessions/server-resources.ts';
import type { Sessions } from '../sessions/sessions.ts';
import type { Bridge } from '../surfaces/bridge/listen.ts';
import { declaresApps, watchedTransport } from '../surfaces/mcp/apps.ts';
import { createMcpServer } from '../surfaces/mcp/server.ts';
import { projectFiles } from '../tools/caller-files.ts';
import { createLabListing, createLabTools } from '../tools/lab.ts';
import type { OpenConfinement } from './confinement.ts';
import { parseServerFlags } from './server-flags.ts';
import { shellCommand, stopSignal } from './this-program.ts';

interface Confined {
  resources: ServerResources;
  confinement: OpenConfinement;
}

/** Milliseconds; the agent's first request comes at once, and is answered before anything slow begins. */
const FIRST_ANSWER = 30;

export async function main(args: string[]): Promise<number | undefined> {
  const { config, project, mistyped } = parseServerFlags(args);
  const log = createLog(config.logLevel);
  if (mistyped.length > 0) log.warn(`The environment has what is no setting: ${mistyped.join(', ')}`);
  const paths = findPaths();
  runtimeFolder(paths.runtime); // Fails at once if it cannot be used.
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
    opened ??= openSessions().then((sessions) => Object.assign(sessions, { socketPath }));
    return opened;
  };
  const labTools = createLabTools({ labsOf: () => labs, files: projectFiles(project) });
  const { tools, structured } = config;
  const lab = tools === 'code' ? undefined : { tools: labTools, listing: createLabListing(tools) };
  let hasApps = false;
  const options = { sessions, log, lab, structured, shellCommand: shellCommand(), hasApps: () => hasApps };
  const transport = watchedTransport(new StdioServerTransport(), (message) => {
    hasApps = declaresApps(message) ?? hasApps;
  });
  const stdio = serveStdio(() => createMcpServer(options), {
    transport,
    onerror: (error) => log.warn({ err: error }, 'mcp'),
  });

  let bridge: Bridge | undefined;
  const listen = async () => {
    await sleep(FIRST_ANSWER);
    const { openBridge } = await import('../surfaces/bridge/listen.ts');
    const { runtime, data } = paths;
    bridge = await openBridge({ sessions: await sessions(), runtime, data, kind: 'agent', log, labTools });
    return bridge.socket;
  };
  const socketPath = listen().catch(failed);
  socketPath.then(async () => (await sessions()).warmUp()).catch(failed);

  const inputEnded = new Promise<void>((resolve) => {
    process.stdin.once('end', resolve);
    process.stdin.once('close', resolve);
  });
  await Promise.race([inputEnded, stopSignal()]);
  bridge?.close();
  await opened?.then((sessions) => sessions.close()).catch(failed);
  await confined?.confinement.close();
  confined?.resources.close();
  await labs.close();
  await stdio.close();
  process.exit(0);
}

/** Confines code to the project's folder; it sees no other file of the user's. */
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
