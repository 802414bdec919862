/**
 * The test command: builds, checks, and runs every suite, the Python driver's under several Pythons. `npm test -- NAME…` runs only those suites.
 * The soak, the Docker image, and the driver under Pythons between the oldest and the newest are run only on CI, or where they are named.
 * What a suite lacks is installed first, without a time limit; where that is not possible the suite is skipped by name, and on CI that is a failure.
 * The last line is the count of tests over all suites: N passed, N failed.
 */

import { join } from 'node:path';
import { installPackages, pythons, whyNoBrowser, whyNoImage, whyNotConfined } from './testing/machine.mjs';
import { CANNOT_RUN, clock, ROOT, run, show, withHeartbeat } from './testing/run.mjs';

const isCi = Boolean(process.env.CI);
const wanted = process.argv.slice(2);
const cache = join(ROOT, 'node_modules', '.cache', 'cuvette-test');
const LANES = 3;
const HEARTBEAT_SECONDS = 30;
const results = [];
const began = performance.now();

await withHeartbeat(HEARTBEAT_SECONDS, runAll);
report();

async function runAll() {
  const waiting = chosen(suites());
  if (!waiting) return;
  await installPackages(['bwrap', 'c++', 'venv', 'debootstrap']);
  await installPackages(['chromium']);
  await installPackages(['docker-compose']); // By itself: what a system does not have keeps it from nothing else.
  const isBuilt = await suite({ name: 'build', command: 'npm', args: ['run', '--silent', 'build'], isStep: true });
  if (!isBuilt) return;
  // Installs wait for the network more than they work: they go on beside the first suites.
  const inLane = createLanes(LANES);
  await Promise.all(waiting.map(({ needs, ...one }, rank) => afterNeeds(needs, one, (work) => inLane(rank, work))));
}

/** Those that are asked for; nothing if one of them is not there. */
function chosen(all) {
  const unknown = wanted.filter((name) => !all.some((one) => one.name === name));
  if (unknown.length > 0) {
    const names = all.map(({ name }) => name).join(', ');
    process.stdout.write(`There is no suite ${unknown.join(', ')}. There are: ${names}\n`);
    process.exitCode = 64;
    return undefined;
  }
  if (wanted.length > 0) return all.filter(({ name }) => wanted.includes(name));
  return all.filter(({ isLong = false }) => isCi || !isLong);
}

/** The longest first; unit tests and checks before all, because they tell most in the shortest time. */
function suites() {
  const environment = once(() => prepared('environment'));
  const confinement = async () => (await environment()) ?? whyNotConfined();
  const step = (name, command, args) => ({ name, command, args, isStep: true });
  return [
    vitest('unit'),
    step('check', 'npm', ['run', '--silent', 'check']),
    step('references', 'node', ['scripts/references.mjs', '--check']),
    { ...vitest('live'), needs: environment },
    { ...vitest('attack'), needs: confinement },
    { ...vitest('torch'), needs: () => prepared('torch') },
    { ...vitest('lab'), needs: environment },
    { ...vitest('browser'), needs: async () => whyNoBrowser() ?? environment() },
    { ...vitest('soak'), needs: confinement, isLong: true },
    {
      ...step('hadolint', join(cache, 'hadolint', 'bin', 'hadolint'), ['Dockerfile']),
      needs: () => prepared('hadolint'),
    },
    {
      ...step('python check', join(cache, 'python-check', 'bin', 'python'), ['python/check.py']),
      needs: () => prepared('python-check'),
    },
    { ...vitest('docker'), needs: async () => whyNoImage() ?? prepared('docker'), isLong: true },
    { name: 'MCP conformance', command: 'node', args: ['scripts/conformance.mjs'], countLine: countConformance },
    ...pythons().flatMap((python, index, all) => driver(python, index === 0 || index === all.length - 1)),
  ];
}

function vitest(project) {
  const progress = join(ROOT, 'scripts', 'testing', 'vitest-progress.mjs');
  const args = ['run', '--project', project, '--reporter=default', `--reporter=${progress}`];
  return {
    name: project,
    command: process.execPath,
    args: [join(ROOT, 'node_modules', 'vitest', 'vitest.mjs'), ...args],
  };
}

/** The driver's own tests: on the bare Python, and on the oldest and the newest with IPython, pandas and matplotlib in an environment made for it. Versions between those are CI's. */
function driver({ version, path }, isEdge) {
  const script = join(ROOT, 'scripts', 'testing', 'driver.mjs');
  const under = (name, ...args) => ({
    name,
    command: process.execPath,
    args: [script, ...args],
    quiet: true,
    countLine: countUnittest,
    isLong: !isEdge,
  });
  const bare = under(`driver ${version}`, path);
  if (!isEdge) return [bare];
  const python = join(cache, `driver-${version}`, 'bin', 'python');
  return [
    bare,
    { ...under(`driver ${version}, rich`, python, 'rich'), needs: () => prepared('driver', path, version) },
  ];
}

/** Resolves to why it could not be made, or to nothing. */
async function prepared(...what) {
  const name = `preparing ${what[0]}`;
  const args = ['scripts/testing/prepare.mjs', ...what];
  const { problem, lines } = await run({ name, command: process.execPath, args });
  return problem && (lines.at(-1) || problem);
}

async function afterNeeds(needs, one, inLane) {
  const lacking = await needs?.();
  if (lacking) return skip(one.name, lacking);
  return inLane(() => suite(one));
}

/** Of a step that is no suite, its own success counts as one test. */
async function suite({ name, isStep = false, ...what }) {
  process.stdout.write(`\n== ${name}\n`);
  const { status, lines, counts, problem, seconds } = await run({ name, ...what });
  if (status === CANNOT_RUN) return skip(name, lines.at(-1));
  if (isStep && !problem) counts.passed = 1;
  if (problem && counts.failed === 0) counts.failed = 1;
  results.push({ name, state: problem ? 'failed' : 'passed', problem, counts, seconds });
  show(name, `${problem ? `FAILED, ${problem}` : 'passed'}: ${tell(counts)} in ${clock(seconds * 1000)}`);
  return !problem;
}

function skip(name, problem) {
  show(name, `SKIPPED: ${problem}`);
  const counts = { passed: 0, failed: isCi ? 1 : 0, skipped: 0 };
  results.push({ name, state: isCi ? 'failed' : 'SKIPPED', problem, counts, seconds: 0 });
}

function once(make) {
  let made;
  return () => {
    made ??= make();
    return made;
  };
}

/** Of those that wait for a free lane, the one of the lowest rank goes first: what had to be installed first may be what takes longest. */
function createLanes(most) {
  const waiting = [];
  let busy = 0;
  return async (rank, work) => {
    if (busy >= most) await new Promise((free) => waiting.push({ rank, free }));
    busy += 1;
    try {
      return await work();
    } finally {
      busy -= 1;
      waiting.sort((a, b) => a.rank - b.rank);
      waiting.shift()?.free();
    }
  };
}

function countUnittest(line, counts) {
  const [, how] = / \.\.\. (ok|FAIL|ERROR|expected failure|skipped .*)$/.exec(line) ?? [];
  if (how === 'ok' || how === 'expected failure') counts.passed += 1;
  else if (how?.startsWith('skipped')) counts.skipped += 1;
  else if (how) counts.failed += 1;
}

/** Of each revision of the protocol, whether all went as expected. */
function countConformance(line, counts) {
  if (/Baseline check passed/.test(line)) counts.passed += 1;
}

function tell({ passed, failed, skipped }) {
  return `${passed} passed, ${failed} failed${skipped ? `, ${skipped} skipped` : ''}`;
}

function report() {
  process.stdout.write('\n');
  for (const { name, state, problem, counts, seconds } of results)
    process.stdout.write(
      `${state.padEnd(8)} ${clock(seconds * 1000).padStart(6)}  ${name.padEnd(20)} ${tell(counts)}${problem ? ` (${problem})` : ''}\n`,
    );
  process.stdout.write(`in ${clock(performance.now() - began)}\n`);
  const total = (key) => results.reduce((sum, { counts }) => sum + counts[key], 0);
  process.stdout.write(`${total('passed')} passed, ${total('failed')} failed\n`);
  if (results.some(({ state }) => state === 'failed')) process.exitCode = 1;
}
