import { readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { cpp } from '../../../src/interpreters/process/cpp.ts';
import { go } from '../../../src/interpreters/process/go.ts';
import { probeCommand, probeTool } from '../../../src/interpreters/process/probe-command.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

let folder: string;
const question = { names: ['tool', 'other'], args: ['--version'], version: /tool (\d\S*)/ };

beforeEach(() => {
  folder = temporaryFolder();
  vi.stubEnv('PATH', folder);
  return () => vi.unstubAllEnvs();
});

function put(name: string, script: string, into = folder): string {
  const path = join(into, name);
  writeFileSync(path, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  return path;
}

describe('a command that is looked for', () => {
  it('is found on PATH, with its version', async () => {
    const path = put('tool', 'echo "tool 1.2.3 (build 4)"; echo more');
    expect(await probeCommand(question)).toEqual({ path, version: '1.2.3', says: 'tool 1.2.3 (build 4)' });
    expect(await probeTool(question)).toEqual({ path, version: '1.2.3' });
  });

  it('is missing if it is nowhere, is not executable, fails, or says something else', async () => {
    expect(await probeTool(question)).toEqual({ missing: ['tool', 'other'] });
    writeFileSync(join(folder, 'tool'), '#!/bin/sh\necho tool 1\n');
    expect(await probeCommand(question)).toBeUndefined();
    for (const script of ['echo tool 1; exit 1', 'echo hello', 'kill -9 $$']) {
      put('other', script);
      expect(await probeCommand(question)).toBeUndefined();
    }
  });

  it('that is broken is passed over for the next on PATH', async () => {
    const second = temporaryFolder();
    vi.stubEnv('PATH', [folder, second].join(delimiter));
    put('tool', 'exit 1');
    const path = put('tool', 'echo tool 2', second);
    expect(await probeCommand(question)).toMatchObject({ path, version: '2' });
  });

  it('has its preferred name, wherever on PATH', async () => {
    const second = temporaryFolder();
    vi.stubEnv('PATH', [folder, second].join(delimiter));
    put('other', 'echo tool 1');
    const path = put('tool', 'echo tool 2', second);
    expect(await probeCommand(question)).toMatchObject({ path });
  });

  it('may be in a folder that is not on PATH', async () => {
    const elsewhere = temporaryFolder();
    const path = put('tool', 'echo tool 3', elsewhere);
    expect(await probeCommand({ ...question, folders: [elsewhere] })).toMatchObject({ path });
  });

  it('is asked once, and one that is missing is found when it comes', async () => {
    expect(await probeCommand(question)).toBeUndefined();
    put('tool', `echo x >> ${folder}/asked; echo tool 1`);
    await probeCommand(question);
    await probeCommand(question);
    expect(readFileSync(join(folder, 'asked'), 'utf8')).toBe('x\n');
  });

  it('is not looked for in the current folder', async () => {
    vi.stubEnv('PATH', ['', '.', folder].join(delimiter));
    const path = put('tool', 'echo tool 1');
    expect(await probeCommand(question)).toMatchObject({ path });
  });
});

describe('the version that a command tells', () => {
  it.each([
    ['g++', 'g++ (Debian 12.2.0-14+deb12u1) 12.2.0\nCopyright (C) 2022', 'g++ 12.2.0'],
    ['g++', 'Apple clang version 15.0.0 (clang-1500.3.9.4)\nTarget: arm64', 'clang++ 15.0.0'],
    ['clang++', 'Debian clang version 14.0.6\nTarget: x86_64-pc-linux-gnu', 'clang++ 14.0.6'],
    ['g++', 'g++-13 (Homebrew GCC 13.2.0) 13.2.0', 'g++ 13.2.0'],
    ['g++', 'g++ (GCC) 14.2.1 20240801 (Red Hat 14.2.1-1)', 'g++ 14.2.1'],
  ])('of %s that says %j', async (name, says, version) => {
    const path = put(name, `echo '${says}'`);
    expect(await cpp.probe()).toEqual({ path, version });
  });

  it('is found for Go', async () => {
    const path = put('go', 'echo "go version go1.26.8 linux/amd64"');
    expect(await go.probe()).toEqual({ path, version: '1.26.8' });
  });
});
