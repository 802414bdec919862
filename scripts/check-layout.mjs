#!/usr/bin/env node
/**
 * Checks how the modules of src/ depend on each other, and prints what is wrong: imports from a lower room into a higher one, cycles between
 * folders, and names that two modules export. Written here because tools for this take a folder and one inside it for the same folder.
 */

import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, resolve } from 'node:path';
import ts from 'typescript';

/** The rooms of docs/architecture.md from the top down. A room imports from rooms below its row only; the last is src/*.ts. */
const ROOMS = [['cli'], ['surfaces'], ['tools'], ['sessions', 'lab'], ['interpreters'], ['files', 'sandbox'], ['.']];
/** Programs that start here belong to the commands. */
const ENTRIES = /^(main|mcp-py-\w+)\.ts$/;
/** Every command has one. */
const COMMAND = 'main';

/** What is wrong in a folder of sources, as lines to print. */
export function checkLayout(root) {
  const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
  const modules = new Map(files.sort().map((file) => [file, readFileSync(join(root, file), 'utf8')]));
  const imports = [...modules].flatMap(([from, text]) =>
    importsOf(from, text)
      .filter((to) => modules.has(to))
      .map((to) => ({ from, to })),
  );
  return [...upwardImports(imports), ...folderCycles(imports), ...repeatedNames(modules)];
}

function importsOf(from, text) {
  const specifiers = ts.preProcessFile(text, true, true).importedFiles.map(({ fileName }) => fileName);
  return specifiers.filter((name) => name.startsWith('.')).map((name) => normalize(join(dirname(from), name)));
}

function upwardImports(imports) {
  return imports
    .filter(({ from, to }) => roomOf(from) !== roomOf(to) && rank(from) >= rank(to))
    .map(({ from, to }) => `${from} imports ${to}, which is not in a room below it`);
}

function roomOf(file) {
  if (ENTRIES.test(file)) return 'cli';
  return file.includes('/') ? file.slice(0, file.indexOf('/')) : '.';
}

function rank(file) {
  const row = ROOMS.findIndex((rooms) => rooms.includes(roomOf(file)));
  if (row < 0) throw new Error(`${roomOf(file)}/ has no place among the rooms of scripts/check-layout.mjs.`);
  return row;
}

/** Each cycle once, with an import for every step of it. */
function folderCycles(imports) {
  const edges = new Map();
  for (const one of imports) {
    const [from, to] = [folderOf(one.from), folderOf(one.to)];
    if (from !== to) edges.set(from, new Map(edges.get(from)).set(to, one));
  }
  const [finished, found] = [new Set(), []];
  const visit = (folder, path) => {
    if (path.includes(folder)) return found.push([...path.slice(path.indexOf(folder)), folder]);
    if (finished.has(folder)) return;
    for (const next of edges.get(folder)?.keys() ?? []) visit(next, [...path, folder]);
    finished.add(folder);
  };
  for (const folder of edges.keys()) visit(folder, []);
  return found.map((cycle) => {
    const steps = cycle.slice(1).map((folder, i) => edges.get(cycle[i]).get(folder));
    const shown = steps.map(({ from, to }) => `${from} → ${to}`).join(', ');
    return `${cycle.join(' → ')} is a cycle between folders: ${shown}`;
  });
}

function folderOf(file) {
  return ENTRIES.test(file) ? 'cli' : dirname(file);
}

/** An exported name has one meaning in the whole tree. */
function repeatedNames(modules) {
  const declared = new Map();
  for (const [file, text] of modules) {
    for (const name of exportedNames(file, text)) declared.set(name, [...(declared.get(name) ?? []), file]);
  }
  return [...declared]
    .filter(([name, files]) => files.length > 1 && name !== COMMAND)
    .map(([name, files]) => `${name} is exported by ${files.join(' and ')}: give each meaning a name of its own`);
}

function exportedNames(file, text) {
  const statements = ts.createSourceFile(file, text, ts.ScriptTarget.Latest).statements.filter(isExported);
  const declarations = statements.flatMap((one) => one.declarationList?.declarations ?? [one]);
  return new Set(declarations.flatMap(({ name }) => (name && ts.isIdentifier(name) ? [name.text] : [])));
}

function isExported(statement) {
  return statement.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword) ?? false;
}

if (process.argv[1] === import.meta.filename) {
  const problems = checkLayout(resolve(import.meta.dirname, '../src'));
  for (const problem of problems) console.error(problem);
  process.exitCode = problems.length > 0 ? 1 : 0;
}
