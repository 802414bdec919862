/**
 * Draws the README's picture of a terminal from a real run: `npm run build && node scripts/terminal-picture.mjs` types the commands below
 * in a folder of its own, with a CUVETTE_HOME of its own, and writes what they printed to docs/images/first-minute.svg.
 */

import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const OUT = join(ROOT, 'docs', 'images', 'first-minute.svg');
/** With a `last`, so many lines of what is printed are shown. */
const COMMANDS = [
  {
    type: `cuvette run <<'PY'
import pandas as pd
df = pd.DataFrame({"city": ["Oslo", "Rome", "Lima"], "rain": [763, 837, 16]})
df.sort_values("rain")
PY`,
  },
  { type: `kill -9 $(cuvette call --json get_session_info | grep -o '"server_pid": [0-9]*' | cut -d' ' -f2)` },
  {
    type: `cuvette run -c 'df.to_csv("rain.csv", index=False); int(df.rain.sum())'   # a new server, the same variables`,
  },
  { type: `cuvette run -i bash -c 'sort -t, -k2 -n -r rain.csv | head -2'` },
  { type: `cuvette lab demo | grep -A5 'can be read'   # look inside a language model`, last: 6 },
];

const home = mkdtempSync(join(tmpdir(), 'cuvette-picture-'));
const project = join(home, 'project');
mkdirSync(project);
const env = { ...process.env, CUVETTE_HOME: join(home, 'h'), PICTURE_MAIN: join(ROOT, 'dist', 'main.js') };
for (const name of ['CLAUDECODE', 'CURSOR_AGENT', 'CODEX_SANDBOX', 'GEMINI_CLI', 'OPENCODE']) delete env[name];

function type(command) {
  const shell = `cuvette() { node "$PICTURE_MAIN" "$@"; }\n${command}`;
  const { stdout, stderr } = spawnSync('bash', ['--norc', '-c', shell], { cwd: project, env, encoding: 'utf8' });
  if (/^cuvette: /m.test(stderr)) throw new Error(`${command}\n${stderr}`);
  return (stdout + stderr).replace(/\n$/, '').split('\n');
}

try {
  // The first server makes the environment: whoever waits for pandas waits for that.
  type(`cuvette run -c 'import pandas'`);
  type(`kill $(cuvette call --json get_session_info | grep -o '"server_pid": [0-9]*' | cut -d' ' -f2)`);
  type('sleep 2');
  const lines = COMMANDS.flatMap(({ type: command, last }) => {
    const printed = type(command).filter((line, index, all) => index > 0 || line !== '' || all.length > 1);
    const [first = '', ...rest] = command.split('\n');
    return [
      { kind: 'typed', text: `$ ${first}` },
      ...rest.map((text) => ({ kind: 'typed', text: `> ${text}` })),
      ...(last ? printed.slice(-last) : printed).map((text) => ({ kind: 'printed', text })),
    ];
  });
  mkdirSync(join(ROOT, 'docs', 'images'), { recursive: true });
  writeFileSync(OUT, draw(lines));
  process.stdout.write(`${lines.map(({ text }) => text).join('\n')}\n\n${OUT}\n`);
} finally {
  type(`kill $(cuvette call --json get_session_info | grep -o '"server_pid": [0-9]*' | cut -d' ' -f2)`);
  rmSync(home, { recursive: true, force: true });
}

function draw(lines) {
  const [wide, high, size] = [8.43, 20, 14];
  const width = Math.ceil(Math.max(...lines.map(({ text }) => text.length)) * wide + 40);
  const height = lines.length * high + 60;
  const colours = { typed: '#7ee2b8', printed: '#d5dae3' };
  const rows = lines.map(({ kind, text }, index) => {
    const y = 52 + index * high;
    return `<text x="20" y="${y}" fill="${colours[kind]}" xml:space="preserve">${inXml(text)}</text>`;
  });
  const dots = ['#ff5f57', '#febc2e', '#28c840'].map(
    (colour, index) => `<circle cx="${22 + index * 18}" cy="20" r="6" fill="${colour}"/>`,
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-label="A terminal: Cuvette's variables survive a killed server">
<rect width="100%" height="100%" rx="8" fill="#171b22"/>
${dots.join('\n')}
<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="${size}">
${rows.join('\n')}
</g>
</svg>
`;
}

function inXml(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
