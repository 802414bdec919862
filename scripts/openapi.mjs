#!/usr/bin/env node
/**
 * Writes docs/openapi.json from what the built program answers to GET /openapi.json: node scripts/openapi.mjs
 * With --check it writes nothing, and ends with 1 if the file is not current.
 */

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const TARGET = join(ROOT, 'docs', 'openapi.json');
/** The document names the address that it was asked for at; the file, where a service listens by default. */
const EXAMPLE = 'http://127.0.0.1:8000';

const page = formatted(JSON.stringify(sorted(await readService())));
if (!process.argv.includes('--check')) {
  writeFileSync(TARGET, page);
} else if (!existsSync(TARGET) || readFileSync(TARGET, 'utf8') !== page) {
  process.stderr.write('docs/openapi.json is not current. Run: npm run build && node scripts/openapi.mjs\n');
  process.exitCode = 1;
}

async function readService() {
  const home = mkdtempSync(join(tmpdir(), 'cuvette-'));
  const service = spawn(process.execPath, [join(ROOT, 'dist', 'main.js'), 'serve', '--port', '0', '--project', home], {
    // None of the caller's settings; and a description needs no Python, so none is started.
    env: { PATH: process.env.PATH, CUVETTE_HOME: home, CUVETTE_PYTHON: '/dev/null', CUVETTE_LOG_LEVEL: 'silent' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(service, 'exit');
  try {
    const url = await urlIn(service.stdout);
    const response = await fetch(`${url}/openapi.json`);
    if (!response.ok) throw new Error(`GET /openapi.json: ${response.status} ${await response.text()}`);
    return { ...(await response.json()), servers: [{ url: EXAMPLE }] };
  } finally {
    service.kill('SIGINT');
    await ended;
    rmSync(home, { recursive: true, force: true });
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
  return execFileSync(biome, ['format', `--stdin-file-path=${TARGET}`], { cwd: ROOT, input: json, encoding: 'utf8' });
}
