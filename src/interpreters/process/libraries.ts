/** Lists what programs in each language can use without installing anything: commands, modules, packages, headers. It asks each tool. */

import { execFile } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { isExecutable } from '../../search-path.ts';
import type { Language, LanguageTool } from './language.ts';

/** By name, with their versions; null for what does not tell its own. */
export type Libraries = Record<string, string | null>;

const run = promisify(execFile);
const TIMEOUT_MS = 20_000;
/** The longest list, that of Go's packages, takes a few kilobytes. */
const LONGEST = 4 * 1024 * 1024;

/** Modules that are built in, and packages in the folders that Node looks into from everywhere. */
const ASK_NODE = `
const { builtinModules, globalPaths } = require('node:module');
const { readdirSync } = require('node:fs');
const found = Object.fromEntries(builtinModules.filter((name) => !name.startsWith('_')).map((name) => [name, process.versions.node]));
for (const folder of globalPaths) {
  let names = [];
  try { names = readdirSync(folder); } catch {}
  for (const name of names) {
    try { found[name] = require(folder + '/' + name + '/package.json').version ?? null; } catch {}
  }
}
process.stdout.write(JSON.stringify(found));
`;

const READERS: Record<Language['name'], (tool: LanguageTool, searchPath: string[]) => Promise<Libraries>> = {
  bash: (_, searchPath) => commandsIn(searchPath),
  node: nodeModules,
  typescript: nodeModules,
  go: goPackages,
  cpp: standardHeaders,
};

const known = new Map<string, Promise<Libraries>>();

/** None for a language whose tool is missing. `searchPath` is where code looks for commands. */
export async function librariesOf(language: Language, searchPath: string[]): Promise<Libraries> {
  const tool = await language.probe();
  if ('missing' in tool) return {};
  const key = JSON.stringify([language.name, tool, searchPath]);
  const libraries = known.get(key) ?? READERS[language.name](tool, searchPath);
  known.set(key, libraries);
  libraries.catch(() => known.delete(key));
  return libraries;
}

async function commandsIn(folders: string[]): Promise<Libraries> {
  const found = await Promise.all(
    folders.map(async (folder) => {
      const names = await readdir(folder).catch(() => []);
      return names.filter((name) => isExecutable(join(folder, name)));
    }),
  );
  return named(found.flat(), null);
}

async function nodeModules({ path }: LanguageTool): Promise<Libraries> {
  // Code has a home of its own, so what lies in the server's does not count.
  const env = { HOME: '/nonexistent' };
  const { stdout } = await run(path, ['-e', ASK_NODE], { timeout: TIMEOUT_MS, cwd: '/', env });
  return JSON.parse(stdout);
}

async function goPackages({ path, version }: LanguageTool): Promise<Libraries> {
  const { stdout } = await run(path, ['list', 'std'], { timeout: TIMEOUT_MS, maxBuffer: LONGEST, cwd: '/' });
  const isOurs = (name: string) => name !== '' && !/(^|\/)(internal|vendor)(\/|$)/.test(name);
  return named(stdout.split('\n').filter(isOurs), version);
}

/** The headers of the standard library: those without an ending, where the compiler looks for <vector>. */
async function standardHeaders({ path, version }: LanguageTool): Promise<Libraries> {
  const args = ['-x', 'c++', '-E', '-v', '/dev/null', '-o', '/dev/null'];
  const { stderr } = await run(path, args, { timeout: TIMEOUT_MS });
  const [, listed = ''] = /#include <\.\.\.> search starts here:\n([\s\S]*?)End of search list/.exec(stderr) ?? [];
  for (const folder of listed.split('\n').map((line) => line.trim())) {
    const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
    const headers = entries
      .filter((entry) => entry.isFile() && /^[a-z0-9_]+$/.test(entry.name))
      .map(({ name }) => name);
    if (headers.includes('vector')) return named(headers, version);
  }
  return {};
}

function named(names: string[], version: string | null): Libraries {
  return Object.fromEntries([...new Set(names)].sort().map((name) => [name, version]));
}
