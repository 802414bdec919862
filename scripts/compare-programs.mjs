#!/usr/bin/env node
/**
 * Runs every program of a folder with the bare tool of its language and through `POST /exec` of a running service, and shows
 * where exit code, stdout or stderr differ: node scripts/compare-programs.mjs --lang go --url http://127.0.0.1:8000 FOLDER
 */

import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import ts from 'typescript';

const HELP = `Usage: node scripts/compare-programs.mjs --lang LANG --url URL [options] FOLDER

Runs each file of FOLDER with the bare tool, in an empty folder, and through POST /exec; shows where the results differ.
Left out, and counted: a program that gives the bare tool itself another result each time, takes it too long, is not valid
in its language (ts), or is not UTF-8.

  --lang LANG   bash, js, ts, go or cpp
  --url URL     the address of a running service, as cuvette serve prints it
  --jobs N      programs at once (2)
  --limit N     only the first N files
  --json FILE   writes all results there
  --help        shows this

Ends with 1 if any program differs.
`;

/** Milliseconds that a program may take, its build included. */
const PATIENCE = 20_000;
/** Milliseconds for output that is still on its way when a program has ended. */
const LAST_OUTPUT = 200;
/** How often the bare tool is asked again before a difference counts. */
const REPEATS = 8;
const SHOWN = 800;
const TS_FILE = 'main.ts';
/** Strict is what the program says is: Node sees no more than that. */
const TS_OPTIONS = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext, alwaysStrict: false };
const SYNTAX_ERROR = 'SyntaxError';
/** What TypeScript numbers below is about syntax. */
const FIRST_TYPE_ERROR = 2000;

/** How the bare tool runs a program: the file it is put into, and the commands, each after the one before it has succeeded. */
const TOOLS = {
  bash: ({ own }) => ({ file: `${own}/main.sh`, commands: [['bash', `${own}/main.sh`]] }),
  js: ({ work }) => ({ file: `${work}/.main.js`, commands: [['node', `${work}/.main.js`]] }),
  ts: ({ work }) => ({ file: `${work}/.main.js`, commands: [['node', '--enable-source-maps', `${work}/.main.js`]] }),
  go: ({ own }) => ({
    file: `${own}/main.go`,
    commands: [
      [...`go -C ${own} build -buildmode=exe -trimpath`.split(' '), '-ldflags=-s -w', '-o', 'program', 'main.go'],
      [`${own}/program`],
    ],
  }),
  cpp: ({ own }) => ({
    file: `${own}/main.cpp`,
    commands: [
      [...`g++ -std=c++17 -O2 -pthread -pipe -o ${own}/program ${own}/main.cpp`.split(' ')],
      [`${own}/program`],
    ],
  }),
};

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    lang: { type: 'string', default: '' },
    url: { type: 'string', default: '' },
    jobs: { type: 'string', default: '2' },
    limit: { type: 'string', default: 'Infinity' },
    json: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});
const [folder] = positionals;
if (flags.help) {
  process.stdout.write(HELP);
} else if (!(flags.lang in TOOLS) || !flags.url || !folder) {
  process.stderr.write(HELP);
  process.exitCode = 2;
} else {
  await compareAll();
}

async function compareAll() {
  const files = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isFile());
  const names = files.map(({ name }) => name).sort();
  const waiting = names.slice(0, Number(flags.limit));
  const results = [];
  const work = async () => {
    for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
      const result = { name, ...(await compare(readFileSync(join(folder, name)))) };
      results.push(result);
      if (result.verdict === 'differs') show(result);
    }
  };
  await Promise.all(Array.from({ length: Number(flags.jobs) }, work));
  if (flags.json) writeFileSync(flags.json, `${JSON.stringify(results, undefined, 1)}\n`);
  process.stdout.write(`${summary(results)}\n`);
  process.exitCode = results.some(({ verdict }) => verdict === 'differs') ? 1 : 0;
}

/** @returns {Promise<{ verdict: 'same' | 'differs' | 'left out', why?: string, bare?: object, service?: object }>} */
async function compare(bytes) {
  const code = bytes.toString('utf8');
  if (!Buffer.from(code).equals(bytes)) return { verdict: 'left out', why: 'not UTF-8' };
  const program = flags.lang === 'ts' ? toJavaScript(code) : code;
  const bare = await runBare(program);
  if (!bare) return { verdict: 'left out', why: 'too slow' };
  const service = await runService(code);
  if (isSame(bare, service)) return { verdict: 'same', bare };
  if (service.stderr === SYNTAX_ERROR && isFaulty(code)) return { verdict: 'left out', why: 'not valid' };
  for (let i = 0; i < REPEATS; i++) {
    const again = await runBare(program);
    if (!again || !isSame(bare, again)) return { verdict: 'left out', why: 'unsteady' };
  }
  return { verdict: 'differs', bare, service };
}

function isSame(one, other) {
  return one.code === other.code && one.stdout === other.stdout && one.stderr === other.stderr;
}

/** The result of the bare tool; nothing, if it takes too long. */
async function runBare(code) {
  const root = mkdtempSync(join(realpathSync(tmpdir()), 'compare-'));
  const place = { own: `${root}/own`, work: `${root}/work` };
  for (const path of Object.values(place)) mkdirSync(path);
  try {
    const { file, commands } = TOOLS[flags.lang](place);
    writeFileSync(file, code);
    if (flags.lang === 'go') writeFileSync(`${place.own}/go.mod`, `module program\n`);
    const end = Date.now() + PATIENCE;
    const whole = { code: 0, stdout: '', stderr: '' };
    for (const command of commands) {
      // Only the program itself is kept from what the user has set; a compiler finds its cache by it.
      const env = command === commands.at(-1) ? smallEnvironment(place.work) : { ...process.env, CGO_ENABLED: '0' };
      const { isLate, code, stdout, stderr } = await run(command, { cwd: place.work, env, end });
      if (isLate) return undefined;
      whole.code = code;
      whole.stdout += stdout;
      whole.stderr += stderr;
      if (code !== 0) break;
    }
    return normalised(whole, (text) =>
      text
        .replaceAll(file, 'PROGRAM')
        .replaceAll('.main.js', 'PROGRAM')
        .replaceAll(place.work, 'WORKSPACE')
        .replaceAll(place.own, 'OWN'),
    );
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

/** What the service gives a program of its user's variables. */
function smallEnvironment(home) {
  const kept = Object.entries(process.env).filter(([name]) => /^(PATH|LANG|LC_.*|TZ|TERM|GOROOT)$/.test(name));
  return { ...Object.fromEntries(kept), HOME: home };
}

function run([command, ...args], { cwd, env, end }) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
    const output = { stdout: [], stderr: [] };
    for (const name of ['stdout', 'stderr']) child[name].on('data', (chunk) => output[name].push(chunk));
    const killAll = () => {
      try {
        process.kill(-child.pid, 'SIGKILL');
      } catch {} // It has ended.
    };
    let isLate = false;
    const patience = setTimeout(() => {
      isLate = true;
      killAll();
    }, end - Date.now());
    child.once('error', reject);
    child.once('exit', () => {
      clearTimeout(patience);
      setTimeout(killAll, LAST_OUTPUT).unref();
    });
    child.once('close', (status, signal) => {
      const text = (name) => Buffer.concat(output[name]).toString('utf8');
      const code = signal ? 128 + constants.signals[signal] : status;
      resolve({ isLate, code, stdout: text('stdout'), stderr: text('stderr') });
    });
  });
}

async function runService(code) {
  const response = await fetch(new URL('/exec', flags.url), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ lang: flags.lang, code, timeout: PATIENCE }),
  });
  const answer = await response.json();
  if (!response.ok) return { code: null, stdout: '', stderr: `${response.status} ${JSON.stringify(answer)}` };
  const { stdout, stderr, code: status, status: verdict, message } = answer.run;
  // Of a program that a signal has ended, the service says so in a last line of its own.
  const said = verdict === 'SG' && stderr.endsWith(`${message}\n`) ? stderr.slice(0, -message.length - 1) : stderr;
  return normalised({ code: status, stdout, stderr: said }, (text) =>
    text
      .replace(/\/mnt\/program\/main\.\w+|(?:\/mnt\/data\/)?\.cuvette-[0-9a-f]+\.[cm]?js/g, 'PROGRAM')
      .replaceAll('/mnt/data', 'WORKSPACE')
      .replaceAll('/mnt/program', 'OWN'),
  );
}

function normalised({ code, stdout, stderr }, replacePaths) {
  // Node's warnings bear the number of the process.
  const said = replacePaths(stderr).replace(/^\(node:\d+\)/gm, '(node)');
  if (flags.lang !== 'ts') return { code, stdout: replacePaths(stdout), stderr: said };
  const inSource = (text) => text.replaceAll(`WORKSPACE/${TS_FILE}`, 'PROGRAM');
  return { code, stdout: inSource(replacePaths(stdout)), stderr: essence(inSource(said)) };
}

/** As the TypeScript compiler writes it, without checking types. */
function toJavaScript(code) {
  const compilerOptions = { ...TS_OPTIONS, inlineSourceMap: true };
  return ts.transpileModule(code, { fileName: TS_FILE, compilerOptions }).outputText;
}

/** Whether the TypeScript compiler finds fault with the syntax, as far as it can tell without the types of the library. */
function isFaulty(code) {
  const source = ts.createSourceFile(TS_FILE, code, TS_OPTIONS.target);
  const program = ts.createProgram({
    rootNames: [TS_FILE],
    options: { ...TS_OPTIONS, noLib: true, noResolve: true, types: [] },
    host: { ...ts.createCompilerHost(TS_OPTIONS), getSourceFile: (name) => (name === TS_FILE ? source : undefined) },
  });
  const problems = [...program.getSyntacticDiagnostics(), ...program.getSemanticDiagnostics()];
  return problems.some((problem) => problem.code < FIRST_TYPE_ERROR);
}

/** Of an error in TypeScript, what it says. Where it came from depends on how the types are taken out. */
function essence(stderr) {
  if (/^SyntaxError: |^main\.ts:\d+:\d+ - error: /m.test(stderr)) return SYNTAX_ERROR;
  return stderr
    .replace(/^(?:file:\/\/)?PROGRAM:\d+\n.*\n[ \t]*\^+ *\n+/gm, '')
    .replace(/^ +at .*(?:PROGRAM|node:internal).*\n/gm, '');
}

function show({ name, bare, service }) {
  const lines = [`\n-- ${name}`];
  for (const part of ['code', 'stdout', 'stderr']) {
    if (bare[part] === service[part]) continue;
    lines.push(`${part}, bare:    ${shortened(bare[part], service[part])}`);
    lines.push(`${part}, service: ${shortened(service[part], bare[part])}`);
  }
  process.stdout.write(`${lines.join('\n')}\n`);
}

/** From a little before where it begins to differ. */
function shortened(value, other) {
  if (typeof value !== 'string' || typeof other !== 'string') return String(value);
  let start = 0;
  while (start < value.length && value[start] === other[start]) start += 1;
  const from = Math.max(0, start - 60);
  return `${from > 0 ? '…' : ''}${JSON.stringify(value.slice(from, from + SHOWN))}`;
}

function summary(results) {
  const count = (verdict) => results.filter((result) => result.verdict === verdict).length;
  const parts = [`${count('same') + count('differs')} programs`, `${count('same')} same`];
  if (count('differs') > 0) parts.push(`${count('differs')} different`);
  const reasons = results.filter(({ verdict }) => verdict === 'left out').map(({ why }) => why);
  const left = [...new Set(reasons)].map((why) => `${reasons.filter((one) => one === why).length} ${why}`);
  return `${flags.lang}: ${parts.join(', ')}${left.length > 0 ? ` (left out: ${left.join(', ')})` : ''}`;
}
