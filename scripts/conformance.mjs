/**
 * Runs the official MCP conformance suite against Cuvette over HTTP, for both eras of the protocol.
 * The suite is installed into a folder of its own, with a Node for it if this one is too old. Exits with 75 where that is not possible.
 */

import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const SUITE = '@modelcontextprotocol/conformance@0.2.0-alpha.12';
const NODE = 'node@24.21.0';
const OLDEST_NODE = 24;
const REVISIONS = ['2025-11-25', '2026-07-28'];
const INSTALL_TIME = 120_000;
const RUN_TIME = 60_000;
const NOT_AVAILABLE = 75;
const FLAGS = ['--no-save', '--no-audit', '--no-fund', '--fetch-retries=1', '--loglevel=error'];

const root = resolve(import.meta.dirname, '..');
const cache = join(root, 'node_modules', '.cache', 'mcp-conformance');
const entry = fileURLToPath(import.meta.resolve('../test/conformance/server.ts'));
const expected = join(root, 'test', 'conformance', 'expected-failures.yml');

const suite = join(install(SUITE), '@modelcontextprotocol', 'conformance', 'dist', 'index.js');
// The suite needs 22; the server under test is run as it is written, which is what 24 can do.
const isNew = Number(process.versions.node.split('.')[0]) >= OLDEST_NODE;
const node = isNew ? process.execPath : join(install(NODE), 'node', 'bin', 'node');

const server = spawn(node, [entry], { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] });
try {
  const url = await firstLine(server);
  process.exitCode = REVISIONS.every((revision) => passes(revision, url)) ? 0 : 1;
} finally {
  server.kill('SIGTERM');
}

/** The node_modules folder that the package is in. */
function install(name) {
  const folder = join(cache, name.replace(/.*\//, ''));
  const ready = join(folder, 'ready');
  if (existsSync(ready)) return join(folder, 'node_modules');
  process.stdout.write(`Installing ${name}\n`);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const command = ['install', '--prefix', folder, ...FLAGS, name];
  const { status } = spawnSync('npm', command, { stdio: 'inherit', timeout: INSTALL_TIME });
  if (status !== 0) {
    process.stderr.write(
      `${name} could not be installed: is the npm registry within reach? Conformance was not tested.\n`,
    );
    process.exit(NOT_AVAILABLE);
  }
  writeFileSync(ready, '');
  return join(folder, 'node_modules');
}

/** The server says its address when it is there. */
async function firstLine({ stdout }) {
  for await (const line of createInterface({ input: stdout })) return line;
  throw new Error('The server under test did not start.');
}

function passes(revision, url) {
  process.stdout.write(`\n== MCP ${revision}\n`);
  const results = join(cache, 'results', revision);
  rmSync(results, { recursive: true, force: true });
  const flags = ['--url', url, '--requirements', revision, '--expected-failures', expected, '-o', results];
  const { status, stdout, stderr, error } = spawnSync(node, [suite, 'server', ...flags], {
    cwd: dirname(suite),
    encoding: 'utf8',
    timeout: RUN_TIME,
  });
  const isOk = status === 0;
  const summary = stdout.indexOf('=== SUMMARY ===');
  process.stdout.write(isOk && summary !== -1 ? stdout.slice(summary) : `${stdout}\n${stderr}`);
  process.stdout.write('Extensions and pending scenarios are run and shown, but a revision does not require them.\n');
  if (!isOk)
    process.stdout.write(
      `\nMCP ${revision}: not as expected (${error?.message ?? `exit code ${status}`}); see ${results}\n`,
    );
  return isOk;
}
