/**
 * The test command: builds, checks, and runs every suite, the Python driver's under each Python there is.
 * What a suite lacks is installed where that is possible; else the suite is skipped by name, and on CI that is a failure.
 */

import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';

const root = resolve(import.meta.dirname, '..');
const cache = join(root, 'node_modules', '.cache', 'cuvette-test');
const isCi = Boolean(process.env.CI);
const results = [];
/** No driver suite takes a tenth of it; one that hangs is ended, and says what it had run. */
const LONGEST_SUITE_MS = 10 * 60_000;
/** A suite that cannot get what it needs says so by this status. */
const CANNOT_RUN = 75;

run('build', 'npm', ['run', '--silent', 'build']);
run('check', 'npm', ['run', '--silent', 'check']);
run('tool reference', 'node', ['scripts/tool-reference.mjs', '--check']);
run('openapi.json', 'node', ['scripts/openapi.mjs', '--check']);
installBubblewrap();
run('sessions', 'npx', [
  'vitest',
  'run',
  '--reporter=default',
  '--reporter=json',
  `--outputFile.json=${join(cache, 'vitest.json')}`,
]);
const cannotConfine = whyNotConfined();
if (cannotConfine) skip('attacks', cannotConfine);
else run('attacks', 'npm', ['run', '--silent', 'test:attack']);
run('MCP conformance', 'node', ['scripts/conformance.mjs'], 'the suite could not be installed');
await atOnce(3, [torchTests(), ...pythons().flatMap(driverTests)]);
report();

function run(name, command, args, lacking) {
  process.stdout.write(`\n== ${name}\n`);
  const { status, signal, error } = spawnSync(command, args, {
    cwd: root,
    stdio: 'inherit',
  });
  if (status === CANNOT_RUN && lacking) return skip(name, lacking);
  const problem = status === 0 ? undefined : (error?.message ?? signal ?? `exit code ${status}`);
  results.push({ name, state: problem ? 'failed' : 'passed', problem });
  return !problem;
}

function skip(name, problem) {
  process.stdout.write(`\n== ${name}\nSKIPPED: ${problem}\n`);
  results.push({ name, state: isCi ? 'failed' : 'skipped', problem: `skipped: ${problem}` });
}

/** What confines sessions comes with no system; it is installed here, where that can be done without a question. */
function installBubblewrap() {
  if (process.platform !== 'linux' || has('bwrap')) return;
  const sudo = process.getuid() === 0 ? [] : ['sudo', '-n'];
  const managers = {
    'apt-get': ['apt-get', 'install', '-y', 'bubblewrap'],
    dnf: ['dnf', 'install', '-y', 'bubblewrap'],
    apk: ['apk', 'add', 'bubblewrap'],
  };
  const found = Object.keys(managers).find(has);
  if (!found) return;
  process.stdout.write('\n== installing bubblewrap, which confines sessions\n');
  const [command, ...args] = [...sudo, ...managers[found]];
  const install = () => spawnSync(command, args, { stdio: 'inherit' }).status === 0;
  if (!install() && found === 'apt-get') {
    const [update, ...rest] = [...sudo, 'apt-get', 'update'];
    spawnSync(update, rest, { stdio: 'inherit' });
    install();
  }
}

function has(command) {
  return spawnSync('sh', ['-c', `command -v ${command}`]).status === 0;
}

/** As the program itself sees it; nothing if it can confine. */
function whyNotConfined() {
  const { stdout } = spawnSync('node', ['dist/main.js', 'doctor', '--json'], { cwd: root, encoding: 'utf8' });
  const sandbox = JSON.parse(stdout || '[]').find(({ name }) => name === 'sandbox');
  return sandbox?.state === 'works'
    ? undefined
    : (sandbox?.detail ?? 'cuvette doctor did not say whether this machine can confine');
}

/** They wait more than they work: a few at a time, each told of when it has ended. */
async function atOnce(most, suites) {
  const waiting = [...suites];
  const work = async () => {
    for (let next = waiting.shift(); next; next = waiting.shift()) await runQuietly(next);
  };
  await Promise.all(Array.from({ length: most }, work));
}

function runQuietly({ name, command, args, lacking }) {
  return new Promise((done) => {
    const parts = [];
    const child = spawn(command, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'], timeout: LONGEST_SUITE_MS });
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => parts.push(data));
    child.once('error', (error) => parts.push(Buffer.from(error.message)));
    child.once('close', (status, signal) => {
      const said = Buffer.concat(parts).toString();
      if (status === CANNOT_RUN && lacking) {
        skip(name, `${lacking}\n${said}`);
        return done();
      }
      const problem = status === 0 ? undefined : (signal ?? `exit code ${status}`);
      results.push({ name, state: problem ? 'failed' : 'passed', problem });
      process.stdout.write(`\n== ${name}\n${problem ? said : said.split('\n').slice(-4).join('\n')}`);
      done();
    });
  });
}

/** It finds a Python that has torch, or makes one. */
function torchTests() {
  const args = ['run', '--silent', 'test:torch'];
  return { name: 'torch engine', command: 'npm', args, lacking: 'torch could not be installed' };
}

/** The driver's own tests: on the bare Python, and with IPython, pandas and matplotlib in an environment made for it. */
function driverTests({ name, path, isRich }) {
  const suite = ['-m', 'unittest', 'discover', '-v', '-s', 'python/tests'];
  const bare = { name: `driver on ${name}`, command: path, args: [...suite, '-p', 'test_[!r]*.py'] };
  if (!isRich) return [bare];
  const folder = join(cache, `rich-${name}`);
  const python = join(folder, 'bin', 'python');
  if (!existsSync(join(folder, 'ready'))) {
    mkdirSync(cache, { recursive: true });
    const steps = [
      [path, ['-m', 'venv', '--clear', folder]],
      [python, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', 'ipython', 'pandas', 'matplotlib']],
      [python, ['-c', `open(${JSON.stringify(join(folder, 'ready'))}, 'w')`]],
    ];
    const failed = steps.find(([command, args]) => spawnSync(command, args, { stdio: 'inherit' }).status !== 0);
    if (failed) {
      skip(`driver on ${name} with IPython, pandas, matplotlib`, 'they could not be installed');
      return [bare];
    }
  }
  const rich = { name: `driver on ${name} with IPython, pandas, matplotlib`, command: python };
  return [bare, { ...rich, args: [...suite, '-p', 'test_[rs]*.py'] }];
}

/** The Python on PATH and every other version that pyenv has; the oldest and the newest also with IPython. */
function pythons() {
  const found = new Map();
  const add = (path) => {
    const { status, stdout } = spawnSync(
      path,
      ['-c', 'import sys; print("%d.%d" % sys.version_info[:2], sys.executable)'],
      { encoding: 'utf8' },
    );
    if (status !== 0) return;
    const [version, executable] = stdout.trim().split(' ');
    const [major, minor] = version.split('.').map(Number);
    if (major === 3 && minor >= 9 && !found.has(version))
      found.set(version, { name: `Python ${version}`, path: executable, minor });
  };
  add('python3');
  const pyenv = join(homedir(), '.pyenv', 'versions');
  for (const version of ['3.9', '3.10', '3.11', '3.12', '3.13', '3.14']) {
    add(`python${version}`);
    for (const folder of list(pyenv)) if (folder.startsWith(`${version}.`)) add(join(pyenv, folder, 'bin', 'python'));
  }
  const all = [...found.values()].sort((a, b) => a.minor - b.minor);
  return all.map((python, index) => ({ ...python, isRich: index === 0 || index === all.length - 1 }));
}

function list(folder) {
  const { status, stdout } = spawnSync('ls', [folder], { encoding: 'utf8' });
  return status === 0 ? stdout.trim().split('\n') : [];
}

function report() {
  process.stdout.write('\n');
  for (const { name, state, problem } of results)
    process.stdout.write(`${state.padEnd(8)} ${name}${problem ? ` (${problem})` : ''}\n`);
  const vitest = existsSync(join(cache, 'vitest.json'))
    ? JSON.parse(readFileSync(join(cache, 'vitest.json'), 'utf8'))
    : undefined;
  if (vitest) process.stdout.write(`${vitest.numPassedTests} passed, ${vitest.numFailedTests} failed\n`);
  process.exitCode = results.some(({ state }) => state === 'failed') ? 1 : 0;
}
