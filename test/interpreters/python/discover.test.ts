import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { discoverPythons } from '../../../src/interpreters/python/discover.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

let home: string;
let project: string;

beforeEach(() => {
  home = temporaryFolder();
  project = temporaryFolder();
  vi.stubEnv('HOME', home);
  return () => vi.unstubAllEnvs();
});

function python(...parts: string[]): string {
  const path = join(...parts);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, '#!/bin/sh\n');
  chmodSync(path, 0o755);
  return path;
}

function sdkTable(product: string, entries: { name: string; type?: string; path: string }[]): void {
  const folder = join(home, '.config', 'JetBrains', product, 'options');
  mkdirSync(folder, { recursive: true });
  const jdks = entries.map(
    ({ name, type = 'Python SDK', path }) => `
    <jdk version="2">
      <name value="${name}" />
      <type value="${type}" />
      <version value="Python 3.12" />
      <homePath value="${path}" />
      <roots><classPath><root type="composite" /></classPath></roots>
    </jdk>`,
  );
  writeFileSync(
    join(folder, 'jdk.table.xml'),
    `<application>\n<component name="ProjectJdkTable">${jdks.join('')}</component></application>`,
  );
}

const names = () => discoverPythons(project).map(({ name }) => name);

describe('the Pythons of a project', () => {
  it('are none where there are none', () => {
    expect(discoverPythons(project)).toEqual([]);
  });

  it('are its virtual environments', () => {
    const path = python(project, '.venv', 'bin', 'python');
    python(project, 'venv', 'bin', 'python');
    expect(names()).toEqual(['.venv', 'venv']);
    expect(discoverPythons(project)[0]?.python).toBe(path);
  });

  it('do not include a folder that has no Python in it', () => {
    mkdirSync(join(project, '.venv'));
    expect(discoverPythons(project)).toEqual([]);
  });
});

describe("the SDKs of JetBrains' IDEs", () => {
  it('are found, whichever product has them', () => {
    const one = python(home, 'one', 'python');
    const two = python(home, 'two', 'python');
    sdkTable('PyCharm2024.1', [{ name: 'One', path: one }]);
    sdkTable('IntelliJIdea2024.1', [{ name: 'Two', path: two }]);
    const found = discoverPythons(project).sort((a, b) => a.name.localeCompare(b.name));
    expect(found).toEqual([
      { name: 'One', python: one, description: 'Python SDK of PyCharm2024.1' },
      { name: 'Two', python: two, description: 'Python SDK of IntelliJIdea2024.1' },
    ]);
  });

  it('do not include those of other languages', () => {
    const java = python(home, 'java');
    sdkTable('IntelliJIdea2024.1', [{ name: '21', type: 'JavaSDK', path: java }]);
    expect(discoverPythons(project)).toEqual([]);
  });

  it('do not include one whose Python is gone', () => {
    sdkTable('PyCharm2024.1', [{ name: 'Gone', path: '/no/such/python' }]);
    expect(discoverPythons(project)).toEqual([]);
  });

  it("may be given relative to the user's home", () => {
    const path = python(home, 'envs', 'a', 'bin', 'python');
    sdkTable('PyCharm2024.1', [{ name: 'A', path: '$USER_HOME$/envs/a/bin/python' }]);
    expect(discoverPythons(project)[0]?.python).toBe(path);
  });

  it('have the names that the user gave them', () => {
    sdkTable('PyCharm2024.1', [{ name: 'R&amp;D &lt;&quot;3.12&quot;&gt;', path: python(home, 'p', 'python') }]);
    expect(names()).toEqual(['R&D <"3.12">']);
  });

  it('are listed once, also where the project has the same Python', () => {
    const path = python(project, '.venv', 'bin', 'python');
    sdkTable('PyCharm2023.3', [{ name: 'Same', path }]);
    sdkTable('PyCharm2024.1', [{ name: 'Same', path }]);
    expect(names()).toEqual(['.venv']);
  });

  it('are none in a file that is no table of SDKs', () => {
    const folder = join(home, '.config', 'JetBrains', 'PyCharm2024.1', 'options');
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'jdk.table.xml'), '<jdk><name value="half');
    expect(discoverPythons(project)).toEqual([]);
  });
});
