/** The workbench's routes over the sessions of a project whose code a test steers, and a reader of their events. */

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Hono } from 'hono';
import { onTestFinished } from 'vitest';
import { readConfig } from '../../../src/config.ts';
import { openSpills } from '../../../src/files/spill.ts';
import { createLog } from '../../../src/log.ts';
import { createSessions } from '../../../src/sessions/sessions.ts';
import type { RestEnv } from '../../../src/surfaces/caller.ts';
import { onError } from '../../../src/surfaces/rest/problem.ts';
import { createWorkbench, type WorkbenchOptions } from '../../../src/surfaces/workbench/workbench.ts';
import { TOOLS } from '../../../src/tools/registry.ts';
import { fakeResources, fakeZygotes, runAtOnce, until } from '../../sessions/fake-keepers.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

// biome-ignore lint/suspicious/noExplicitAny: a test says what it expects
export type Json = any;

export interface Told {
  id: string;
  event: Json;
}

export interface Reader {
  readonly told: Told[];
  /** The first event of which this holds. */
  find(holds: (event: Told['event']) => boolean): Promise<Told['event']>;
  readonly isOver: boolean;
  close(): Promise<void>;
}

export async function openWorkbench(
  settings: Record<string, string> = {},
  given: Partial<WorkbenchOptions> & { root?: string } = {},
) {
  const root = given.root ?? temporaryFolder();
  const project = join(root, 'project');
  mkdirSync(project, { recursive: true });
  const zygotes = fakeZygotes();
  zygotes.onSpawn = runAtOnce;
  const resources = fakeResources(root, zygotes);
  const sessions = createSessions({
    config: readConfig(settings, {}),
    paths: resources.paths,
    project,
    resources,
  });
  const workbench = createWorkbench({
    sessionsOf: () => sessions,
    ownerOf: () => 'me',
    toolsOf: () => TOOLS,
    log: createLog('silent'),
    spills: await openSpills(join(temporaryFolder(), 'spill')),
    uploads: { largest: 1000, quota: 0 },
    maxBody: 100_000,
    silence: 10_000,
    ...given,
  });
  onTestFinished(() => workbench.close());
  const app = new Hono<RestEnv>();
  app.onError(onError(createLog('silent')));
  app.use(async (c, next) => {
    c.set('isPage', c.req.header('cookie') !== undefined);
    await next();
  });
  app.route('/', workbench.routes);
  const get = async (path: string): Promise<Json> => (await app.request(path)).json();
  const create = async (): Promise<string> => jsonOf(await post('/sessions', {})).then(({ id }) => id);
  const post = (path: string, body: object, headers: Record<string, string> = {}) =>
    app.request(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
  const read = async (path: string, headers: Record<string, string> = {}) =>
    readEvents(await app.request(path, { headers }));
  /** Runs code as an agent does, to its end. */
  const run = async (code: string) => {
    const started = await sessions.start({ code, origin: 'agent' });
    await started.finished;
    return started;
  };
  return { root, project, sessions, zygotes, store: resources.store(), workbench, app, get, post, create, read, run };
}

export async function jsonOf(response: Response): Promise<Json> {
  return response.json();
}

function readEvents(response: Response): Reader {
  if (!response.ok || !response.body) throw new Error(`answered with ${response.status}`);
  const told: Told[] = [];
  const body = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let isOver = false;
  const reading = (async () => {
    let rest = '';
    for (let piece = await body.read(); !piece.done; piece = await body.read()) {
      const blocks = (rest + piece.value).split('\n\n');
      rest = blocks.pop() ?? '';
      for (const block of blocks) {
        const [, id = '', data] = /^id: (\S+)\ndata: (.*)$/s.exec(block) ?? [];
        if (data !== undefined) told.push({ id, event: JSON.parse(data) });
      }
    }
    isOver = true;
  })();
  reading.catch(() => {});
  const close = async () => {
    await body.cancel();
  };
  onTestFinished(close);
  return {
    told,
    async find(holds) {
      await until(() => told.some(({ event }) => holds(event)));
      return told.find(({ event }) => holds(event))?.event;
    },
    get isOver() {
      return isOver;
    },
    close,
  };
}
