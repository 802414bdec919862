/** Builds the page into dist/web, and fails if what a browser loads first has grown too large. */

import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { gzipSync } from 'node:zlib';
import { build } from 'vite';
import { buildApps } from './build-apps.mjs';

const ROOT = resolve(import.meta.dirname, '..');
const WEB = join(ROOT, 'dist', 'web');
/** Bytes of JavaScript, compressed, that the page loads before it shows a session: its own, and the editor with Python's grammar. */
const MOST_FIRST = 350_000;

export async function buildPage() {
  await build({ configFile: join(ROOT, 'web', 'vite.config.ts'), logLevel: 'error' });
  await buildApps();
  const { first, all } = measurePage();
  if (first > MOST_FIRST)
    throw new Error(
      `The page loads ${first} bytes of compressed JavaScript first, more than ${MOST_FIRST}. Load what is not seen at once when it is.`,
    );
  return { first, all };
}

/** In bytes, compressed: what `index.html` names, what that imports, and what a session with Python loads at once; and everything. */
export function measurePage() {
  const files = readdirSync(join(WEB, 'ui')).filter((name) => name.endsWith('.js'));
  const size = (names) => names.reduce((sum, name) => sum + gzipSync(readFileSync(join(WEB, 'ui', name))).length, 0);
  const roots = [...readFileSync(join(WEB, 'index.html'), 'utf8').matchAll(/ui\/([\w.-]+\.js)/g)].map(
    ([, name]) => name,
  );
  const entry = closure(roots);
  const atOnce = files.filter((name) => /^(editor|highlight|languages)-/.test(name));
  const python = files.filter((name) => readFileSync(join(WEB, 'ui', name), 'utf8').includes('pythonLanguage'));
  return { entry: size([...entry]), first: size([...closure([...entry, ...atOnce, ...python])]), all: size(files) };
}

function closure(names) {
  const found = new Set();
  const visit = (name) => {
    if (found.has(name)) return;
    found.add(name);
    const text = readFileSync(join(WEB, 'ui', name), 'utf8');
    for (const [, next] of text.matchAll(/(?:from|import)\s*["']\.\/([\w.-]+\.js)["']/g)) visit(next);
  };
  for (const name of names) visit(name);
  return found;
}

if (process.argv[1] === import.meta.filename) {
  await buildPage();
  const { entry, first, all } = measurePage();
  const kB = (bytes) => `${(bytes / 1000).toFixed(1)} kB`;
  console.log(
    `Compressed JavaScript: ${kB(entry)} before anything is drawn, ${kB(first)} with the editor and Python's grammar (at most ${kB(MOST_FIRST)}), ${kB(all)} in all.`,
  );
}
