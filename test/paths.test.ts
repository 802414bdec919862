import { chmodSync, chownSync, mkdirSync, statSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CuvetteError } from '../src/errors.ts';
import { findPaths, ownFolder, privateFolder } from '../src/paths.ts';
import { temporaryFolder } from './temporary-folder.ts';

const isRoot = process.getuid?.() === 0;

describe('paths', () => {
  it('are all below CUVETTE_HOME where it is set', () => {
    const env = { CUVETTE_HOME: '/somewhere', XDG_CACHE_HOME: '/c', XDG_DATA_HOME: '/d', XDG_RUNTIME_DIR: '/r' };
    expect(findPaths(env)).toEqual({
      cache: '/somewhere/cache',
      data: '/somewhere/data',
      runtime: '/somewhere/run',
    });
  });

  it("follow the desktop's folders", () => {
    const env = { XDG_CACHE_HOME: '/c', XDG_DATA_HOME: '/d', XDG_RUNTIME_DIR: '/r' };
    expect(findPaths(env)).toEqual({ cache: '/c/cuvette', data: '/d/cuvette', runtime: '/r/cuvette' });
  });

  it("fall back to the user's own", () => {
    const cache = join(homedir(), '.cache', 'cuvette');
    const data = join(homedir(), '.local', 'share', 'cuvette');
    expect(findPaths({})).toEqual({ cache, data, runtime: join(cache, 'run') });
  });

  it('take an empty variable as not set', () => {
    const empty = { CUVETTE_HOME: '', XDG_CACHE_HOME: '', XDG_DATA_HOME: '', XDG_RUNTIME_DIR: '' };
    expect(findPaths(empty)).toEqual(findPaths({}));
  });
});

describe('a private folder', () => {
  it('is made for its owner only, with the folders above it', () => {
    const folder = join(temporaryFolder(), 'one', 'two');
    expect(privateFolder(folder)).toBe(folder);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    expect(statSync(join(folder, '..')).mode & 0o777).toBe(0o700);
  });

  it('is taken as it is when it is already there', () => {
    const folder = temporaryFolder();
    expect(privateFolder(folder)).toBe(folder);
  });

  it.each([0o755, 0o770, 0o701])('that others can enter (mode %o) is refused, with what to do', (mode) => {
    const folder = join(temporaryFolder(), 'open');
    mkdirSync(folder);
    chmodSync(folder, mode);
    expect(() => privateFolder(folder)).toThrow(`Run: chmod 700 ${folder}`);
    expect(codeOf(() => privateFolder(folder))).toBe('folder_unusable');
  });

  it.runIf(isRoot)("that is somebody else's is refused", () => {
    const folder = join(temporaryFolder(), 'theirs');
    mkdirSync(folder, { mode: 0o700 });
    chownSync(folder, 12_345, 12_345);
    expect(() => privateFolder(folder)).toThrow('belongs to another user');
  });

  it('that cannot be made is refused, with what to do', () => {
    const file = join(temporaryFolder(), 'file');
    writeFileSync(file, '');
    expect(() => privateFolder(join(file, 'below'))).toThrow('set CUVETTE_HOME to a folder of yours');
    expect(codeOf(() => privateFolder(join(file, 'below')))).toBe('folder_unusable');
  });
});

describe('a folder that the user has named', () => {
  it.each([0o755, 0o700, 0o750])('may be one that others can look into (mode %o)', (mode) => {
    const folder = join(temporaryFolder(), 'named');
    mkdirSync(folder);
    chmodSync(folder, mode);
    expect(ownFolder(folder)).toBe(folder);
  });

  it.each([0o777, 0o775])('is refused if others can change it (mode %o), with what to do', (mode) => {
    const folder = join(temporaryFolder(), 'named');
    mkdirSync(folder);
    chmodSync(folder, mode);
    expect(() => ownFolder(folder)).toThrow(`Run: chmod go-w ${folder}`);
    expect(codeOf(() => ownFolder(folder))).toBe('folder_unusable');
  });
});

function codeOf(call: () => unknown): string | undefined {
  try {
    call();
  } catch (error) {
    return error instanceof CuvetteError ? error.code : undefined;
  }
  return undefined;
}
