/** Lists the build context of the image: the files that .dockerignore lets through, and what a COPY takes of them. */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Paths from the root of the context. Of the rules, the last that matches a file or a folder above it counts. */
export function contextFiles(root: string): string[] {
  const rules = rulesOf(readFileSync(join(root, '.dockerignore'), 'utf8'));
  const walk = (folder: string): string[] =>
    readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
      const path = join(folder, entry.name);
      if (!entry.isDirectory()) return [path];
      return /(^|\/)(\.git|node_modules)$/.test(path) ? [] : walk(path);
    });
  return walk('').filter((path) => {
    const last = rules.findLast(({ pattern }) => prefixesOf(path).some((prefix) => pattern.test(prefix)));
    return !last?.isIgnored;
  });
}

/** What a source of COPY names: a file, or all that is below a folder. */
export function copiedFiles(files: readonly string[], source: string): string[] {
  const clean = source.replace(/\/$/, '');
  return files.filter((file) => file === clean || file.startsWith(`${clean}/`));
}

function rulesOf(text: string): { isIgnored: boolean; pattern: RegExp }[] {
  const lines = text.split('\n').map((line) => line.trim());
  return lines
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => ({
      isIgnored: !line.startsWith('!'),
      pattern: patternOf(line.replace(/^!/, '').replace(/^\//, '')),
    }));
}

/** As Docker reads it: `**` is any number of folders, `*` anything within one. */
function patternOf(glob: string): RegExp {
  const parts = glob.split(/(\*\*\/|\*\*|\*|\?)/);
  const known: Record<string, string> = { '**/': '(?:.*/)?', '**': '.*', '*': '[^/]*', '?': '[^/]' };
  return new RegExp(`^${parts.map((part) => known[part] ?? part.replaceAll(/[.+^$(){}|[\]\\]/g, '\\$&')).join('')}$`);
}

/** The path, and every folder above it. */
function prefixesOf(path: string): string[] {
  const parts = path.split('/');
  return parts.map((_, index) => parts.slice(0, index + 1).join('/'));
}
