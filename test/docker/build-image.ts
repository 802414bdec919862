/**
 * Builds an image without Docker: every instruction of every stage of the Dockerfile, in order, in a root of its own, on the files that .dockerignore lets through.
 * What stands before the first COPY of a stage needs none of our files: it is run once and kept, as Docker keeps its layers.
 */

import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { type Say, testCache } from '../prepare.ts';
import { baseRoot } from './base-root.ts';
import { endOf, startInside } from './container.ts';
import { contextFiles, copiedFiles } from './context.ts';
import { type Instruction, parseDockerfile, type Stage } from './dockerfile.ts';

export interface Image {
  root: string;
  cwd: string;
  env: Record<string, string>;
  uid: number;
  gid: number;
  argv: string[];
  health: string[];
}

export interface BuildOptions {
  /** The build context. */
  context: string;
  /** For the roots; whoever made it removes it. */
  folder: string;
  /** For RUN alone: a port that is free, since its network is this machine's. */
  env: Record<string, string>;
  say(line: string): void;
}

interface State extends Image {
  shell: string[];
  args: Record<string, string>;
  entrypoint: string[];
  cmd: string[];
}

/** How this machine's own tools reach their registries. */
const PASSED_ON =
  /^(https?_proxy|no_proxy|all_proxy|npm_config_(registry|cafile)|pip_.*|ssl_cert_.*|node_extra_ca_certs)$/i;

const HEARTBEAT_MS = 60_000;

/** Makes the first layers of each stage, unless they are there. */
export async function prepareLayers(context: string, say: Say): Promise<void> {
  for (const stage of stagesOf(context)) await firstLayer(stage, say);
}

export async function buildImage(options: BuildOptions): Promise<Image> {
  const stages = stagesOf(options.context);
  const files = contextFiles(options.context);
  const roots = new Map<string, string>();
  let last: State | undefined;
  for (const [index, stage] of stages.entries()) {
    last = await buildStage(stage, index);
    if (stage.name) roots.set(stage.name, last.root);
  }
  if (!last) throw new Error('The Dockerfile has no stage.');
  return { ...last, argv: [...last.entrypoint, ...last.cmd] };

  async function buildStage(stage: Stage, index: number): Promise<State> {
    const root = join(options.folder, `stage-${index}`);
    await copyRoot(await firstLayer(stage, options.say), root, options.say);
    const state = stateIn(root);
    for (const one of beforeCopy(stage)) if (one.kind !== 'run') follow(one, state);
    for (const one of stage.instructions.slice(beforeCopy(stage).length)) {
      if (one.kind === 'copy') copy(one, state);
      else if (one.kind === 'run') await run(one.command, state, options);
      else follow(one, state);
    }
    return state;
  }

  function copy({ from, sources, target }: Extract<Instruction, { kind: 'copy' }>, state: State): void {
    const into = target.startsWith('/') ? target : join(state.cwd, target);
    if (from) {
      const root = roots.get(from);
      if (!root) throw new Error(`There is no stage ${from}.`);
      for (const source of sources)
        cpSync(join(root, source), join(state.root, into), { recursive: true, verbatimSymlinks: true });
      return;
    }
    for (const source of sources) {
      const taken = copiedFiles(files, source);
      if (taken.length === 0) throw new Error(`COPY ${source}: .dockerignore does not let it through.`);
      const isFolder = statSync(join(options.context, source)).isDirectory();
      const isInto = target.endsWith('/') || sources.length > 1;
      for (const file of taken) {
        const name = isFolder ? file.slice(source.replace(/\/$/, '').length) : isInto ? basename(file) : '';
        const to = join(state.root, into, name);
        mkdirSync(dirname(to), { recursive: true });
        cpSync(join(options.context, file), to);
      }
    }
  }
}

function stagesOf(context: string): Stage[] {
  return parseDockerfile(readFileSync(join(context, 'Dockerfile'), 'utf8'));
}

function beforeCopy({ instructions }: Stage): Instruction[] {
  const first = instructions.findIndex(({ kind }) => kind === 'copy');
  return first === -1 ? instructions : instructions.slice(0, first);
}

/** The root after the instructions before the first COPY. */
async function firstLayer(stage: Stage, say: Say): Promise<string> {
  if (!/^node:\d+-bookworm-slim$/.test(stage.base))
    throw new Error(`The test has no root that could stand in for ${stage.base}.`);
  const base = await baseRoot(say);
  const instructions = beforeCopy(stage);
  if (!instructions.some(({ kind }) => kind === 'run')) return base;
  const key = createHash('sha256')
    .update(JSON.stringify([basename(base), instructions]))
    .digest('hex')
    .slice(0, 12);
  const layer = join(testCache(), `docker-layer-${key}`);
  if (existsSync(layer)) return layer;
  const making = `${layer}.making`;
  rmSync(making, { recursive: true, force: true });
  await copyRoot(base, making, say);
  const state = stateIn(making);
  for (const one of instructions) {
    if (one.kind === 'run') await run(one.command, state, { env: {}, say });
    else follow(one, state);
  }
  renameSync(making, layer);
  return layer;
}

async function copyRoot(from: string, to: string, say: Say): Promise<void> {
  const { code, stderr } = await endOf(spawn('cp', ['-a', '--reflink=auto', from, to]), say);
  if (code !== 0) throw new Error(`cp of ${from} ended with ${code}: ${stderr}`);
}

function stateIn(root: string): State {
  const path = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
  return {
    ...{ root, cwd: '/', env: { PATH: path }, uid: 0, gid: 0, argv: [], health: [] },
    ...{ shell: ['/bin/sh', '-c'], args: {}, entrypoint: [], cmd: [] },
  };
}

/** Follows an instruction that neither copies nor runs anything. */
function follow(one: Instruction, state: State): void {
  const known = { ...state.args, ...state.env };
  switch (one.kind) {
    case 'workdir':
      state.cwd = one.path;
      mkdirSync(join(state.root, one.path), { recursive: true });
      return;
    case 'arg':
      state.args[one.name] = one.value;
      return;
    case 'env':
      for (const [name, value] of one.values) state.env[name] = filled(value, { ...known, ...state.env });
      return;
    case 'user': {
      const [uid = '', gid = uid] = filled(one.user, known).split(':');
      Object.assign(state, { uid: Number(uid), gid: Number(gid) });
      return;
    }
    case 'shell':
      state.shell = one.argv;
      return;
    case 'healthcheck':
      state.health = one.argv;
      return;
    case 'entrypoint':
      state.entrypoint = one.argv;
      return;
    case 'cmd':
      state.cmd = one.argv;
  }
}

async function run(
  command: string,
  state: State,
  { env: given, say }: Pick<BuildOptions, 'env' | 'say'>,
): Promise<void> {
  const { root, cwd, uid, gid, shell } = state;
  say(`RUN ${command.slice(0, 100)}`);
  const passed = Object.entries(process.env).filter((pair): pair is [string, string] => PASSED_ON.test(pair[0]));
  const env = { ...Object.fromEntries(passed), HOME: homeOf(root, uid), ...state.args, ...state.env, ...given };
  const caches = join(testCache(), 'docker-apt');
  mkdirSync(join(caches, 'partial'), { recursive: true });
  const npmrc = join(homedir(), '.npmrc');
  if (uid === 0 && existsSync(npmrc)) cpSync(npmrc, join(root, 'root', '.npmrc'));
  const binds = {
    [caches]: '/var/cache/apt/archives',
    ...(uid === 0 && { [join(homedir(), '.npm')]: '/root/.npm' }),
  };
  const child = startInside({ root, argv: [...shell, command], cwd, env, uid, gid, binds });
  // The step that builds for Go and C++ does so behind all other work, and prints nothing meanwhile.
  const heartbeat = setInterval(() => say(`still at: RUN ${command.slice(0, 100)}`), HEARTBEAT_MS);
  const { code, stdout, stderr } = await endOf(child, say).finally(() => clearInterval(heartbeat));
  if (code !== 0)
    throw new Error(`RUN ${command}\nended with ${code}:\n${stdout.slice(-2000)}\n${stderr.slice(-4000)}`);
}

/** The home that the root's own list of users has for an id. */
export function homeOf(root: string, uid: number): string {
  const users = readFileSync(join(root, 'etc', 'passwd'), 'utf8').split('\n');
  return users.map((line) => line.split(':')).find((fields) => Number(fields[2]) === uid && fields[0])?.[5] ?? '/';
}

function filled(text: string, values: Record<string, string>): string {
  return text.replaceAll(/\$\{?(\w+)\}?/g, (_, name: string) => values[name] ?? '');
}
