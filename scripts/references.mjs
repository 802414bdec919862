#!/usr/bin/env node
/**
 * Writes the references from what the built program says of itself: docs/tools.md, docs/openapi.json, and the tables of settings, flags
 * and routes between the marks `<!-- generated: NAME -->` and `<!-- /generated -->` of the pages. With --check it writes nothing, and
 * ends with 1 if a file is not current.
 */

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { table } from './references/table.mjs';
import { toolsPage } from './references/tools-page.mjs';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const DOCS = join(ROOT, 'docs');
const PROGRAM = join(ROOT, 'dist', 'main.js');
/** The document names the address that it was asked for at; the file, where a service listens by default. */
const EXAMPLE = 'http://127.0.0.1:8000';
const MARKED = /(<!-- generated: (.+) -->\n)[\s\S]*?(<!-- \/generated -->)/g;

const home = mkdtempSync(join(tmpdir(), 'cuvette-'));
// None of the caller's settings; and a description needs no Python, so none is started.
const env = { PATH: process.env.PATH, CUVETTE_HOME: home, CUVETTE_PYTHON: '/dev/null', CUVETTE_LOG_LEVEL: 'silent' };
try {
  const stale = (await references()).filter(
    ({ path, content }) => !existsSync(path) || readFileSync(path, 'utf8') !== content,
  );
  if (process.argv.includes('--check')) report(stale);
  else for (const { path, content } of stale) writeFileSync(path, content);
} finally {
  rmSync(home, { recursive: true, force: true });
}

async function references() {
  const document = await readDocument();
  const tables = new Map([['routes', routesTable(document)], ...settingsTables(readHelp())]);
  const pages = readdirSync(DOCS, { recursive: true })
    .filter((name) => name.endsWith('.md') && name !== 'tools.md')
    .map((name) => join(DOCS, name));
  return [
    { path: join(DOCS, 'tools.md'), content: toolsPage(await readTools()) },
    { path: join(DOCS, 'openapi.json'), content: formatted(JSON.stringify(sorted(document))) },
    ...pages.map((path) => ({ path, content: withTables(readFileSync(path, 'utf8'), tables, path) })),
  ];
}

function report(stale) {
  for (const { path } of stale)
    process.stderr.write(`${relative(ROOT, path)} is not current. Run: npm run build && node scripts/references.mjs\n`);
  if (stale.length > 0) process.exitCode = 1;
}

function withTables(page, tables, path) {
  return page.replace(MARKED, (_, begin, name, end) => {
    const content = tables.get(name);
    if (content === undefined)
      throw new Error(`${relative(ROOT, path)} asks for ${name}. There are: ${[...tables.keys()].join(', ')}.`);
    return `${begin}\n${content}\n\n${end}`;
  });
}

/** By name: of each group of settings, and of the flags of each command. */
function settingsTables({ settings, flags }) {
  const groups = [...new Set(settings.map(({ group }) => group))];
  return [
    ...groups.map((group) => {
      const rows = settings
        .filter((setting) => setting.group === group)
        .map((setting) => [
          code(`${setting.flag} ${setting.value}`),
          setting.variables.map(code).join(', '),
          code(setting.name),
          setting.default,
          setting.about,
        ]);
      return [`settings, ${group}`, table(['flag', 'environment', 'in the file', 'default', 'meaning'], rows)];
    }),
    ...Object.entries(flags).map(([command, all]) => {
      const rows = all.map(({ flag, variable = '', default: value = '', about }) => [
        code(flag),
        variable && code(variable),
        value,
        about,
      ]);
      return [`flags, ${command}`, table(['flag', 'environment', 'default', 'meaning'], rows)];
    }),
  ];
}

function routesTable({ paths }) {
  const rows = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { summary, description = '' }]) => [
      code(`${method.toUpperCase()} ${path}`),
      summary,
      description,
    ]),
  );
  return table(['route', 'what it does', ''], rows);
}

function code(text) {
  return `\`${text.trim()}\``;
}

function readHelp() {
  return JSON.parse(execFileSync(process.execPath, [PROGRAM, 'help', '--json'], { env, encoding: 'utf8' }));
}

async function readTools() {
  const client = new Client({ name: 'references', version: '0.0.0' });
  try {
    const args = [PROGRAM, 'mcp', '--tools', 'all', '--structured'];
    await client.connect(new StdioClientTransport({ command: process.execPath, args, env }));
    const { tools } = await client.listTools();
    const { resourceTemplates } = await client.listResourceTemplates();
    return { tools, resourceTemplates };
  } finally {
    await client.close();
  }
}

async function readDocument() {
  const args = [PROGRAM, 'serve', '--port', '0', '--project', home];
  const service = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(service, 'exit');
  try {
    const response = await fetch(`${await urlIn(service.stdout)}/openapi.json`);
    if (!response.ok) throw new Error(`GET /openapi.json: ${response.status} ${await response.text()}`);
    return { ...(await response.json()), servers: [{ url: EXAMPLE }] };
  } finally {
    service.kill('SIGINT');
    await ended;
  }
}

async function urlIn(output) {
  for await (const line of createInterface(output)) {
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(line)?.[0];
    if (url) return url;
  }
  throw new Error('The service ended before it said where it listens.');
}

/** By name, so that the file changes only with what it says. */
function sorted(value) {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const names = Object.keys(value).sort();
  return Object.fromEntries(names.map((name) => [name, sorted(value[name])]));
}

function formatted(json) {
  const biome = join(ROOT, 'node_modules', '.bin', 'biome');
  const args = ['format', `--stdin-file-path=${join(DOCS, 'openapi.json')}`];
  return execFileSync(biome, args, { cwd: ROOT, input: json, encoding: 'utf8' });
}
