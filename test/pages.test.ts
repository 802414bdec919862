/** What the pages say can be done today, from a clone; and what no file of the repository names. */

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const FILES = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
  cwd: ROOT,
  encoding: 'utf8',
})
  .trim()
  .split('\n')
  .filter((path) => existsSync(join(ROOT, path)));
const PAGES = FILES.filter((path) => path.endsWith('.md') && path !== 'CHANGELOG.md');
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

describe('pages of the documentation', () => {
  it('tell nobody to use a package that is not released, but for one sentence that says when', () => {
    const hits = FILES.filter((path) => /^(README|docs\/.*\.md|src\/)/.test(path)).flatMap((path) =>
      read(path)
        .split('\n')
        .filter((line) => /npx (-y )?cuvette|"npx"|npm install (-g|--global) cuvette/.test(line))
        .map((line) => `${path}: ${line}`),
    );
    expect(hits).toEqual([expect.stringMatching(/^README\.md: .*Once the package is released, `npx -y cuvette`/)]);
    const readme = read('README.md');
    expect(readme.indexOf('npm install && npm start')).toBeLessThan(readme.indexOf('npx'));
  });

  it.each(PAGES)('%s links to files that are there, and to headings that they have', (path) => {
    const broken = [...withoutCode(read(path)).matchAll(/\]\(([^)\s]+)\)/g)]
      .map(([, target = '']) => target)
      .filter((target) => !/^https?:/.test(target))
      .filter((target) => {
        const [file = '', heading] = target.split('#');
        const page = file === '' ? path : join(dirname(path), file);
        if (!existsSync(join(ROOT, page))) return true;
        return heading !== undefined && !headingsOf(page).includes(heading);
      });
    expect(broken).toEqual([]);
  });
});

describe('files of the repository', () => {
  it('name no host of a package registry: which one is used, pip, uv, npm, Go and apt are configured for', () => {
    // In two parts, so that this file does not name them.
    const hosts = [
      ['pypi', 'org'],
      ['pythonhosted', 'org'],
      ['npmjs', 'org'],
      ['npmjs', 'com'],
      ['golang', 'org'],
      ['deb.debian', 'org'],
      ['nodesource', 'com'],
      ['download.pytorch', 'org'],
    ].map((parts) => parts.join('.'));
    const places = FILES.filter((path) => path !== 'package-lock.json' && !path.startsWith('models/'));
    const named = places.flatMap((path) =>
      hosts.filter((host) => read(path).includes(host)).map((host) => [path, host]),
    );
    expect(named).toEqual([]);
  });
});

function withoutCode(page: string): string {
  return page.replace(/```[\s\S]*?```/g, '').replace(/`[^`\n]*`/g, '');
}

/** As GitHub makes them of headings. */
function headingsOf(page: string): string[] {
  return [...read(page).matchAll(/^#+ (.+)$/gm)].map(([, text = '']) =>
    text
      .toLowerCase()
      .replace(/[^\w\s-]/g, '')
      .replaceAll(' ', '-'),
  );
}
