/** Measures Cuvette against jupyter_client with ipykernel, in one run and in the same environment; prints a table, writes JSON. */

import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { MANY, measureHttp } from './http.mjs';
import { median, print, quantile, row, say } from './table.mjs';

const root = resolve(import.meta.dirname, '..');
const program = join(root, 'dist', 'main.js');
const driver = join(root, 'python', 'cuvette_driver', '__main__.py');
const home = join(root, 'node_modules', '.cache', 'cuvette-bench');
const USED = 'import pandas as pd\ndf = pd.DataFrame({"a": [1, 2]})\ndf';
const RICH =
  'import pandas as pd\nimport matplotlib.pyplot as plt\ndf = pd.DataFrame({"a": [1, 2, 3]})\nfig, ax = plt.subplots()\nax.plot(df["a"])\ndf.describe()';
const SESSIONS = 500;
/** Calls before the measured ones, the same for all: servers in JavaScript grow faster with use. */
const WARM_UP = 1000;

const env = { ...process.env, CUVETTE_HOME: home };
delete env.CUVETTE_PYTHON;

const python = await prepare();
const work = mkdtempSync(join(tmpdir(), 'cvb-'));
const jupyter = measure('ipykernel through jupyter_client', 'jupyter.py', [RICH, USED, '5', String(WARM_UP)]);
const cuvette = measure(`Cuvette's driver, up to ${SESSIONS} sessions`, 'driver.py', [
  driver,
  RICH,
  USED,
  '15',
  String(SESSIONS),
  String(WARM_UP),
]);
const mcp = await measureMcp();
const programs = await measurePrograms();
say('measuring: the HTTP service');
const service = await measureHttp({ program, python, root, env, work, warmUp: WARM_UP });
rmSync(work, { recursive: true, force: true });
const report = compare();
print(report);
mkdirSync(join(root, 'bench', 'results'), { recursive: true });
writeFileSync(
  join(root, 'bench', 'results', 'latest.json'),
  `${JSON.stringify({ report, raw: { jupyter, cuvette, mcp, programs, service } }, null, 2)}\n`,
);
process.exitCode = report.every(({ isMet }) => isMet) ? 0 : 1;

// -- measuring ----------------------------------------------------------------------------------

/** The managed environment, as Cuvette makes it, with the kernel beside it. */
async function prepare() {
  say('preparing: the managed environment, with ipykernel and jupyter_client added to it');
  const client = await connect();
  for (;;) {
    const { structuredContent } = await client.callTool({
      name: 'get_session_info',
      arguments: {},
      _meta: { 'cuvette/structured': true },
    });
    const folder = /^ready: .* in (.*)$/.exec(structuredContent.environment)?.[1];
    if (folder) {
      await client.callTool({ name: 'stop_interpreter', arguments: { name: 'builtin' } });
      await client.close();
      const found = join(folder, 'bin', 'python');
      const installed = spawnSync(
        found,
        ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', 'ipykernel', 'jupyter_client'],
        { stdio: 'inherit' },
      );
      if (installed.status !== 0) throw new Error('ipykernel and jupyter_client could not be installed');
      return found;
    }
    if (!/being made/.test(structuredContent.environment)) throw new Error(structuredContent.environment);
    await new Promise((done) => setTimeout(done, 500));
  }
}

function measure(name, script, args) {
  say(`measuring: ${name}`);
  const { status, stdout } = spawnSync(python, [join(root, 'bench', script), ...args], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
    maxBuffer: 1 << 28,
    env: { ...process.env, IPYTHONDIR: join(work, 'ipython'), JUPYTER_RUNTIME_DIR: join(work, 'jupyter') },
  });
  if (status !== 0) throw new Error(`${script} failed; run it by hand: ${python} bench/${script}`);
  return JSON.parse(stdout);
}

function connect() {
  const client = new Client({ name: 'bench', version: '1' });
  return client
    .connect(new StdioClientTransport({ command: process.execPath, args: [program, 'mcp'], env, cwd: root }))
    .then(() => client);
}

/** Warm calls through a real MCP client over stdio. */
async function measureMcp() {
  say('measuring: warm calls over MCP');
  const client = await connect();
  const times = [];
  for (let index = 0; index < WARM_UP + 500; index++) {
    const start = performance.now();
    await client.callTool({ name: 'execute', arguments: { code: 'x = 1' } });
    if (index >= WARM_UP) times.push((performance.now() - start) / 1000);
  }
  await client.callTool({ name: 'stop_interpreter', arguments: { name: 'builtin' } });
  await client.close();
  return { warm: times };
}

/** Whole programs, each beside `node -e 0` in the same round. */
async function measurePrograms() {
  say('measuring: cuvette mcp and cuvette run beside node -e 0');
  const serve = spawn(process.execPath, [program, 'serve', '--project', work], {
    env,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  await new Promise((done) => serve.stdout.once('data', done));
  const run = () => timeProgram([program, 'run', '-c', 'x = 1'], { cwd: work, env });
  for (let index = 0; index < 3; index++) await run();
  const samples = { node: [], mcp: [], run: [] };
  for (let index = 0; index < 15; index++) {
    samples.node.push(await timeProgram(['-e', '0'], { cwd: work, env }));
    samples.mcp.push(await timeFirstAnswer());
    samples.run.push(await run());
  }
  serve.kill('SIGINT');
  await new Promise((done) => serve.once('exit', done));
  return samples;
}

function timeProgram(args, options) {
  const start = performance.now();
  return new Promise((done) => {
    spawn(process.execPath, args, { ...options, stdio: 'ignore' }).once('exit', () =>
      done((performance.now() - start) / 1000),
    );
  });
}

function timeFirstAnswer() {
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'bench', version: '1' } };
  const start = performance.now();
  const server = spawn(process.execPath, [program, 'mcp'], { env, cwd: work, stdio: ['pipe', 'pipe', 'ignore'] });
  server.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params })}\n`);
  return new Promise((done) => {
    server.stdout.once('data', () => {
      const seconds = (performance.now() - start) / 1000;
      server.once('exit', () => done(seconds));
      server.stdin.end();
    });
  });
}

// -- comparing ----------------------------------------------------------------------------------

function compare() {
  const mb = (bytes) => `${(bytes / 1e6).toPrecision(3)} MB`;
  const node = median(programs.node);
  return [
    row('new session to its first result', median(cuvette.first), median(jupyter.first), 1 / 40),
    row('new session to a first result with pandas and matplotlib', median(cuvette.rich), median(jupyter.rich), 1 / 40),
    row(
      'the same, to the end of the cell, with the figure drawn',
      median(cuvette.richDone),
      median(jupyter.richDone),
      1,
    ),
    row('warm call at the driver', median(cuvette.warm), median(jupyter.warm), 1 / 8),
    row('warm call through MCP over stdio', median(mcp.warm), median(jupyter.warm), 1 / 3),
    row('memory (PSS) of a session after pandas was used', median(cuvette.many.memory), jupyter.memory, 1 / 8, mb),
    row(`${SESSIONS} sessions at once: missing answers`, SESSIONS - cuvette.many.answering, SESSIONS, 0, String),
    row(
      "a bystander's p95 while 50 sessions start, beside its quiet p95",
      quantile(cuvette.burst.busy, 0.95),
      quantile(cuvette.burst.quiet, 0.95),
      4,
    ),
    row('cuvette mcp to its first answer, beside node -e 0', median(programs.mcp), node, 3),
    row('cuvette run, beside node -e 0', median(programs.run), node, 1.5),
    ...compareService(mb),
  ];
}

function compareService(mb) {
  const driver = median(cuvette.warm);
  const bash = median(service.plainBash);
  return [
    row('/exec of Python, warm, beside a client for every call', median(service.warm), median(service.peer), 1 / 40),
    row("the same, beside twice the driver's own time and 1 ms", median(service.warm), 2 * driver + 0.001, 1),
    row('/exec of Python in a new session', median(service.first), median(jupyter.first), 1 / 20),
    row(
      'a new confined session, beside an unconfined one and 5 ms',
      median(service.firstConfined),
      median(service.firstOpen) + 0.005,
      1,
    ),
    row('a new confined session, beside an ipykernel', median(service.firstConfined), median(jupyter.first), 1 / 20),
    row(`${MANY} confined sessions at once: missing answers`, MANY - service.many, MANY, 0, String),
    row('a crash to the next answer, beside a restart', median(service.recovery), median(jupyter.recovery), 1 / 10),
    row('/exec/stream to the first output', median(service.firstByte), median(service.peer), 1 / 40),
    row('/exec of bash, beside plain bash and 10 ms', median(service.bash), bash + 0.01, 1),
    row('/exec of TypeScript, beside node without the types', median(service.typescript), median(service.node), 1.5),
    row('first build of C++, beside plain g++ -O2', median(service.firstCpp), median(service.plainCpp), 1 / 2),
    row('C++ again, beside its binary', median(service['repeated-cpp']), median(service['binary-cpp']), 1.2),
    row('Go again, beside its binary', median(service['repeated-go']), median(service['binary-go']), 1.2),
    row(
      "a bystander's p95 over HTTP while 50 sessions start, beside its quiet p95",
      quantile(service.burst.busy, 0.95),
      quantile(service.burst.quiet, 0.95),
      4,
    ),
    row(
      '50 sessions at once over HTTP, three times: missing answers',
      service.burst.asked - service.burst.answering,
      service.burst.asked,
      0,
      String,
    ),
    row('memory for 1 GB up and down, beside 64 MiB', service.gigabyte.grown, 64 << 20, 1, mb),
  ];
}
