/** Runs C++: a program is built once and cached, by its source and by what it includes from the workspace. */

import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { dirname, join, normalize } from 'node:path';
import { LARGEST_SOURCE, PROGRAM, planBuild } from './builds.ts';
import { type Language, readUserFile, toolOf } from './language.ts';
import { findPrecompiled, precompile } from './precompiled.ts';
import { probeCommand } from './probe-command.ts';

const FLAGS = ['-std=c++17', '-O2', '-pthread', '-pipe'];
const LONGEST_START = 64 * 1024;
const MOST_FILES = 200;
const MOST_BYTES = 4 * 1024 ** 2;

export const cpp: Language = {
  name: 'cpp',
  title: 'C++',
  aliases: ['cpp', 'c++', 'cxx'],
  extension: 'cpp',
  install: 'Install a compiler (Debian, Ubuntu: apt install g++; macOS: xcode-select --install).',

  async probe() {
    const version = /(?:clang version |\) )(\d[\d.]*)/;
    const found = await probeCommand({ names: ['g++', 'clang++'], args: ['--version'], version });
    if (!found) return { missing: ['g++', 'clang++'] };
    // On macOS, g++ is another name of clang++.
    const name = found.says.includes('clang') ? 'clang++' : 'g++';
    return { path: found.path, version: `${name} ${found.version}` };
  },

  async plan(source) {
    const { path, version } = await toolOf(cpp);
    const { code, program, workspace, cache } = source;
    await writeFile(join(program.folder, 'main.cpp'), code);
    const inputs = await inputsOf(code, workspace.folder);
    const header = startsWithEverything(code) && (await findPrecompiled(path, version, FLAGS, cache));
    const folders = ['-iquote', workspace.seen, ...(header ? ['-I', header] : [])];
    const files = ['-o', join(program.seen, PROGRAM), join(program.seen, 'main.cpp')];
    // What was read here may be replaced for a moment while the compiler reads it: such a program is kept for this workspace alone.
    const own = inputs && inputs.parts.length > 0 ? [workspace.folder] : [];
    return planBuild(
      source,
      inputs && ['cpp', version, path, ...FLAGS, ...own, ...inputs.parts],
      { argv: [path, ...FLAGS, ...folders, ...files], env: { TMPDIR: program.seen } },
      async () => (await inputsOf(code, workspace.folder))?.stamp === inputs?.stamp,
    );
  },

  async prepare(cache, signal, options) {
    const { path, version } = await toolOf(cpp);
    await precompile(path, version, FLAGS, cache, { signal, ...options });
  },
};

/** Whether nothing but comments comes before <bits/stdc++.h>: a macro or a pragma could change what the header means. */
function startsWithEverything(code: string): boolean {
  const start = spliced(code.slice(0, LONGEST_START));
  return /^(?:\s|\/\/[^\n]*\n|\/\*[^*]*\*+(?:[^/*][^*]*\*+)*\/)*#[ \t]*include[ \t]*<bits\/stdc\+\+\.h>/.test(start);
}

interface Inputs {
  /** Names and contents. */
  parts: string[];
  /** Changes with every write to one of the files, also one that is taken back. */
  stamp: string;
}

/**
 * What the program may include from the workspace, at any depth; also what is not there, since it would count if it came.
 * Nothing, if that cannot be told by reading: the program is then built each time.
 */
async function inputsOf(code: string, workspace: string): Promise<Inputs | undefined> {
  if (code.length > LARGEST_SOURCE) return undefined;
  const named = includesIn(code);
  if (!named || named.some((name) => name.startsWith('..') || name === 'main.cpp' || name === PROGRAM))
    return undefined;
  const queue = [...named];
  const inputs: Inputs = { parts: [], stamp: '' };
  const seen = new Set<string>();
  let left = MOST_BYTES;
  for (const name of queue) {
    if (seen.has(name)) continue;
    seen.add(name);
    const file = await readUserFile(workspace, name, left);
    if (file.kind === 'other' || seen.size > MOST_FILES) return undefined;
    if (file.kind === 'absent') {
      inputs.parts.push(name, '');
      continue;
    }
    left -= file.bytes.length;
    const nested = includesIn(file.bytes.toString('latin1'));
    if (!nested) return undefined;
    queue.push(...nested.flatMap((other) => [normalize(join(dirname(name), other)), other]));
    inputs.parts.push(name, createHash('sha256').update(file.bytes).digest('hex'));
    inputs.stamp += `${name} ${file.stamp}\n`;
  }
  return inputs;
}

/** The names in quotes that a source includes; nothing, if what it is made from depends on more than the files it names. */
function includesIn(code: string): string[] | undefined {
  const text = spliced(code);
  if (/__has_include|__has_embed|__DATE__|__TIME__|__TIMESTAMP__|\b(?:__)?asm|##|%:%:/.test(text)) return undefined;
  const names: string[] = [];
  for (const line of text.split('\n')) {
    if (!/include|import|embed/.test(line)) continue;
    const [, quoted, other] = /^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)/.exec(line) ?? [];
    const name = quoted ?? other;
    if (name === undefined && /#|%:|\?\?=|\*\//.test(line)) return undefined;
    if (name?.startsWith('/') || other?.includes('..')) return undefined;
    if (quoted !== undefined) names.push(normalize(quoted));
  }
  return names;
}

/** Lines that end in a backslash go on in the next. */
function spliced(code: string): string {
  return code.replace(/\\[ \t]*\r?\n/g, '');
}
