/** Finds Pythons that the user already has for a project: its virtual environments, and the SDKs of JetBrains' IDEs. */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

export interface DiscoveredPython {
  name: string;
  python: string;
  description: string;
}

export function discoverPythons(project: string): DiscoveredPython[] {
  const found = [...virtualEnvironments(project), ...jetBrainsSdks()];
  const seen = new Set<string>();
  return found.filter(({ name, python }) => {
    const isNew = !seen.has(python) && !seen.has(name);
    seen.add(python).add(name);
    return isNew && existsSync(python);
  });
}

function virtualEnvironments(project: string): DiscoveredPython[] {
  return ['.venv', 'venv'].map((name) => ({
    name,
    python: join(project, name, 'bin', 'python'),
    description: `the project's ${name}`,
  }));
}

function jetBrainsSdks(): DiscoveredPython[] {
  const roots = [
    join(homedir(), '.config', 'JetBrains'),
    join(homedir(), 'Library', 'Application Support', 'JetBrains'),
  ];
  return roots.flatMap((root) =>
    list(root).flatMap((product) => sdksIn(join(root, product, 'options', 'jdk.table.xml'), product)),
  );
}

/** JetBrains keeps its SDKs as <jdk> entries with <name>, <type value="Python SDK"> and <homePath>. */
function sdksIn(file: string, product: string): DiscoveredPython[] {
  const entries = read(file).match(/<jdk\b[\s\S]*?<\/jdk>/g) ?? [];
  return entries
    .filter((entry) => attributeOf(entry, 'type') === 'Python SDK')
    .map((entry) => ({
      name: attributeOf(entry, 'name') ?? '',
      python: (attributeOf(entry, 'homePath') ?? '').replace('$USER_HOME$', homedir()),
      description: `Python SDK of ${product}`,
    }))
    .filter(({ name, python }) => name !== '' && python !== '');
}

function attributeOf(entry: string, tag: string): string | undefined {
  const raw = new RegExp(`<${tag}\\s+value="([^"]*)"`).exec(entry)?.[1];
  return raw?.replace(/&(quot|apos|lt|gt|amp);/g, (_, name: string) => ENTITIES[name] ?? '');
}

const ENTITIES: Record<string, string> = { quot: '"', apos: "'", lt: '<', gt: '>', amp: '&' };

function list(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder) : [];
}

function read(file: string): string {
  return existsSync(file) ? readFileSync(file, 'utf8') : '';
}
