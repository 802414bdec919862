/** Runs Go with its standard library, without network. A program is built once and cached. */

import { existsSync } from 'node:fs';
import { mkdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { withLock } from '../../file-lock.ts';
import { runCommand } from '../../run-command.ts';
import { PROGRAM, planBuild } from './builds.ts';
import { type Language, toolOf } from './language.ts';
import { probeTool } from './probe-command.ts';

// Without what only a debugger reads, linking takes half the time. Stack traces stay.
const FLAGS = ['-trimpath', '-ldflags=-s -w'];
/** Where its installers put it, which services often do not have on PATH. */
const FOLDERS = ['/usr/local/go/bin', '/opt/homebrew/bin', '/usr/local/bin'];
/** Ends what hangs. Nobody waits for it, and on a busy machine everything else goes first. */
const TIMEOUT = 60 * 60_000;
/** What most programs import, in the order in which the first callers are likely to want it. */
const PREPARED = [['fmt', 'os', 'strings', 'sort', 'time', 'bufio', 'encoding/json'], ['std']];
const DAY = 24 * 60 * 60 * 1000;
/** Go removes from its cache what nobody has used for five days. */
const TRUSTED = 4 * DAY;
/**
 * Go looks packages up in an index that it writes into its cache, and finds none of them where that is missing and cannot be written.
 * Without the index, it reads the sources.
 */
const WITHOUT_INDEX = { GODEBUG: 'goindex=0' };

export const go: Language = {
  name: 'go',
  title: 'Go',
  aliases: ['go', 'golang'],
  extension: 'go',
  install: 'Install it (Debian, Ubuntu: apt install golang-go, or https://go.dev/dl; macOS: brew install go).',

  probe: () => probeTool({ names: ['go'], args: ['version'], version: /go version go(\d\S*)/, folders: FOLDERS }),

  async plan(source) {
    const { path, version } = await toolOf(go);
    const { code, program, cache, isCacheReadOnly } = source;
    const [release = ''] = /^\d+\.\d+/.exec(version) ?? [];
    await writeFile(join(program.folder, 'main.go'), code);
    // A module of its own, so that none in a folder above counts, and the language is that of the tool.
    await writeFile(join(program.folder, 'go.mod'), `module program\n\ngo ${release}\n`);
    // Libraries are told so by the mode; Go 1.18 cannot change the folder itself.
    const build = [path, 'build', '-buildmode=exe', ...FLAGS, '-o', PROGRAM, 'main.go'];
    const argv = ['/bin/sh', '-c', 'cd "$1" && shift && exec "$@"', 'sh', program.seen, ...build];
    const hasIndex = !isCacheReadOnly || (await preparedFor(cache, version)) < TRUSTED;
    const env = { ...(await environment(cache)), ...(!hasIndex && WITHOUT_INDEX), GOTMPDIR: program.seen };
    return planBuild(source, ['go', version, path, ...FLAGS], { argv, env });
  },

  /** The standard library comes as source: the first program that imports a package waits for its compilation. */
  async prepare(cache, signal, { isBackground } = { isBackground: true }) {
    const { path, version } = await toolOf(go);
    const ready = markerOf(cache, version);
    const env = Object.entries(await environment(cache)).map(([name, value]) => `${name}=${value}`);
    await withLock(`${ready}.lock`, signal, async () => {
      if ((await preparedFor(cache, version)) < DAY) return;
      const options = { timeout: TIMEOUT, scratch: `${ready}.scratch`, isBackground, ...(signal && { signal }) };
      for (const packages of PREPARED) {
        const { ok } = await runCommand(['env', ...env, path, 'build', ...FLAGS, ...packages], options);
        if (!ok) return;
      }
      await writeFile(ready, new Date().toISOString());
    });
  },
};

function markerOf(cache: string, version: string): string {
  return join(cache, 'go', `prepared-${version}`);
}

/** For how many milliseconds all of the standard library has been in the cache; endlessly many if it is not. */
async function preparedFor(cache: string, version: string): Promise<number> {
  return stat(markerOf(cache, version)).then(
    ({ mtimeMs }) => Date.now() - mtimeMs,
    () => Number.POSITIVE_INFINITY,
  );
}

/** Go makes these folders where they are missing; in a sandbox it could not, and would not build at all. */
async function prepareCache(folder: string): Promise<string> {
  if (!existsSync(join(folder, 'ff'))) {
    const names = Array.from({ length: 256 }, (_, index) => index.toString(16).padStart(2, '0'));
    for (const name of names) await mkdir(join(folder, name), { recursive: true, mode: 0o755 });
  }
  return folder;
}

/** Everything that Go would take from the user's settings or fetch, set; everything that it writes, in the cache. */
async function environment(cache: string): Promise<Record<string, string>> {
  const home = join(cache, 'go', 'home');
  const telemetry = join(home, ...(process.platform === 'darwin' ? MAC_SETTINGS : SETTINGS), 'go', 'telemetry');
  await mkdir(telemetry, { recursive: true, mode: 0o755 });
  await writeFile(join(telemetry, 'mode'), 'off', { flag: 'wx' }).catch(() => {});
  return {
    HOME: home,
    XDG_CONFIG_HOME: join(home, ...SETTINGS),
    GOCACHE: await prepareCache(join(cache, 'go', 'build')),
    GOPATH: join(cache, 'go', 'path'),
    GOENV: 'off',
    GOFLAGS: '-buildvcs=false',
    GO111MODULE: 'on',
    GOWORK: 'off',
    GOPROXY: 'off',
    GOSUMDB: 'off',
    GOTOOLCHAIN: 'local',
    CGO_ENABLED: '0',
  };
}

const SETTINGS = ['.config'];
const MAC_SETTINGS = ['Library', 'Application Support'];
