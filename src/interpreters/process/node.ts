/** Runs JavaScript in Node. The program stands in the workspace, so that it can require and import what is there. */

import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { compileFunction } from 'node:vm';
import {
  type Language,
  type LanguageInfo,
  type MappedFolder,
  type ProgramPlan,
  readUserFile,
  type Source,
  toolOf,
} from './language.ts';
import { probeTool } from './probe-command.ts';

const LARGEST_PACKAGE_FILE = 1024 ** 2;
const LARGEST_PARSED = 1024 ** 2;
/** What Node gives every CommonJS module. */
const COMMONJS = ['exports', 'require', 'module', '__filename', '__dirname'];

export const node: Language = {
  name: 'node',
  title: 'JavaScript',
  aliases: ['js', 'javascript', 'node'],
  extension: 'js',
  install: 'Install Node.js 20.19 or later (Debian, Ubuntu: https://nodejs.org/en/download; macOS: brew install node).',
  probe: probeNode,
  plan: (source) => planJavaScript(node, source, source.code),
};

/** The Node on PATH, if it is new enough to tell ES modules by their syntax; else the one that runs this. */
export async function probeNode(): Promise<LanguageInfo> {
  const found = await probeTool({ names: ['node'], args: ['--version'], version: /^v(\d\S*)/ });
  if ('path' in found && isNewEnough(found.version)) return found;
  if (process.release.name === 'node') return { path: process.execPath, version: process.versions.node };
  return { missing: ['node'] };
}

function isNewEnough(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major > 22 || (major === 22 && minor >= 7) || (major === 20 && minor >= 19);
}

export async function planJavaScript(
  language: Language,
  { args, workspace }: Source,
  code: string,
  flags: string[] = [],
): Promise<ProgramPlan> {
  const { path } = await toolOf(language);
  const name = `.cuvette-${randomBytes(6).toString('hex')}.${await extensionFor(code, workspace)}`;
  await writeFile(join(workspace.folder, name), code, { flag: 'wx' });
  return { steps: [{ kind: 'run', argv: [path, ...flags, join(workspace.seen, name), ...args] }], own: [name] };
}

/** Node tells the kind of module by its syntax, unless a package.json speaks for the folder. Here the syntax decides always. */
async function extensionFor(code: string, workspace: MappedFolder): Promise<'js' | 'cjs' | 'mjs'> {
  if (code.length > LARGEST_PARSED || !(await isInPackage(workspace))) return 'js';
  return isCommonJs(code) ? 'cjs' : 'mjs';
}

async function isInPackage({ folder, seen }: MappedFolder): Promise<boolean> {
  const file = await readUserFile(folder, 'package.json', LARGEST_PACKAGE_FILE);
  if (file.kind !== 'absent') return true;
  // Where the program sees the workspace at its real place, the packages around it count too.
  const parent = dirname(folder);
  return seen === folder && parent !== folder && isInPackage({ folder: parent, seen: parent });
}

/** Only parses it. */
export function isCommonJs(code: string): boolean {
  try {
    compileFunction(code.replace(/^#!/, '//'), COMMONJS);
    return true;
  } catch {
    return false;
  }
}
