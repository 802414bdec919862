/** Measures the HTTP service: beside a server that opens a client for every call, and beside the bare tools. */

import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';

const HEAVY_CPP =
  '#include <bits/stdc++.h>\nint main(){ std::mt19937 g(1); unsigned long s=0; for(long i=0;i<150000000;i++) s+=g(); std::cout<<s<<std::endl; }\n';
const HEAVY_GO =
  'package main\nimport "fmt"\nfunc main(){ var s uint64; x := uint64(88172645463325252); for i := 0; i < 600000000; i++ { x ^= x << 13; x ^= x >> 7; x ^= x << 17; s += x }; fmt.Println(s) }\n';
const TYPED =
  'interface Point { x: number; y: number }\nconst points: Point[] = Array.from({ length: 100 }, (_, i): Point => ({ x: i, y: i * i }));\nconsole.log(points.reduce((sum: number, p: Point) => sum + p.x * p.y, 0));\n';
const STRIPPED =
  'const points = Array.from({ length: 100 }, (_, i) => ({ x: i, y: i * i }));\nconsole.log(points.reduce((sum, p) => sum + p.x * p.y, 0));\n';
const GIGABYTE = 1 << 30;
const BURST = 50;
export const MANY = 500;

/** Everything about the service, in one object of samples in seconds and bytes. */
export async function measureHttp({ program, python, root, env, work, warmUp }) {
  const peer = await startPeer(python, root);
  const service = await startService(program, { ...env, CUVETTE_MAX_SESSIONS: '200' }, work);
  const samples = {};
  try {
    samples.peer = await repeat(12, () => post(peer.port, '/', { code: 'print(1)' }));
    const warm = () => exec(service, { lang: 'py', code: 'print(1)', entity_id: 'bench' });
    await repeat(warmUp, warm);
    samples.warm = await repeat(500, warm);
    let entity = 0;
    samples.first = await repeat(15, async () => {
      await sleep(150);
      const start = performance.now();
      entity += 1;
      await exec(service, { lang: 'py', code: '1 + 1', entity_id: `new-${entity}` });
      return performance.now() - start;
    });
    Object.assign(samples, await measureConfinement({ program, env, work, service }));
    samples.firstByte = await repeat(30, () => firstByte(service));
    Object.assign(samples, await measureLanguages(service, work));
    samples.burst = await measureBurst(service);
    samples.gigabyte = await measureGigabyte(service);
  } finally {
    peer.child.kill('SIGINT');
    service.child.kill('SIGINT');
    await Promise.all([peer, service].map(({ child }) => new Promise((done) => child.once('exit', done))));
  }
  return samples;
}

/** A confined service beside an unconfined one, in the same rounds; crashes; and very many sessions. */
async function measureConfinement({ program, env, work, service }) {
  if (!/sandbox: on /.test(service.banner())) throw new Error(`the service is not confined: ${service.banner()}`);
  const open = await startService(program, env, work, ['--sandbox', 'off']);
  const samples = { firstConfined: [], firstOpen: [], recovery: [] };
  try {
    await exec(open, { lang: 'py', code: '1', entity_id: 'open' });
    for (let round = 0; round < 20; round++) {
      for (const [name, one] of [
        ['firstConfined', service],
        ['firstOpen', open],
      ]) {
        await sleep(150);
        samples[name].push(
          ...(await repeat(1, () => exec(one, { lang: 'py', code: '1 + 1', entity_id: `side-${round}` }))),
        );
      }
    }
  } finally {
    open.child.kill('SIGINT');
    await new Promise((done) => open.child.once('exit', done));
  }
  samples.recovery = await repeat(10, async () => {
    await exec(service, { lang: 'py', code: 'import os; os.kill(os.getpid(), 9)', entity_id: 'side-0' });
    await exec(service, { lang: 'py', code: '1 + 1', entity_id: 'side-0' });
  });
  samples.many = await measureMany(program, env, work);
  return samples;
}

/** How many sessions hold their own variable, all of them alive at once. */
async function measureMany(program, env, work) {
  const service = await startService(program, { ...env, CUVETTE_MAX_SESSIONS: String(MANY + 10) }, work);
  try {
    const all = Array.from({ length: MANY }, (_, index) => index);
    const call = (index, code) => exec(service, { lang: 'py', code, entity_id: `many-${index}` });
    for (let start = 0; start < MANY; start += 10)
      await Promise.all(all.slice(start, start + 10).map((index) => call(index, `mine = ${index}`)));
    let right = 0;
    for (let start = 0; start < MANY; start += 10) {
      const answers = await Promise.all(all.slice(start, start + 10).map((index) => call(index, 'print(mine)')));
      right += answers.filter(({ stdout }, offset) => stdout === `${start + offset}\n`).length;
    }
    return right;
  } finally {
    service.child.kill('SIGINT');
    await new Promise((done) => service.child.once('exit', done));
  }
}

async function measureLanguages(service, work) {
  const samples = {};
  samples.bash = await repeat(60, () => exec(service, { lang: 'bash', code: 'echo hello' }));
  samples.plainBash = await repeat(60, () => time('bash', ['-c', 'echo hello'], work));
  const stripped = join(work, 'stripped.js');
  writeFileSync(stripped, STRIPPED);
  await exec(service, { lang: 'ts', code: TYPED });
  samples.typescript = [];
  samples.node = [];
  for (let round = 0; round < 15; round++) {
    samples.typescript.push(...(await repeat(1, () => exec(service, { lang: 'ts', code: TYPED }))));
    samples.node.push(...(await repeat(1, () => time(process.execPath, [stripped], work))));
  }
  // Another program each time: none of them has been built before.
  const salted = (round) => `${HEAVY_CPP}// ${process.pid} ${Date.now()} ${round}\n`.replace('150000000', '1000');
  const source = join(work, 'plain.cpp');
  const binary = join(work, 'plain');
  await exec(service, { lang: 'cpp', code: salted(-1) });
  await sleep(8000); // The precompiled header is made in the background.
  samples.firstCpp = [];
  samples.plainCpp = [];
  for (let round = 0; round < 3; round++) {
    samples.firstCpp.push(...(await repeat(1, () => exec(service, { lang: 'cpp', code: salted(round) }))));
    writeFileSync(source, salted(round));
    const compile = () =>
      time('g++', ['-std=c++17', '-O2', '-o', binary, source], work).then(() => time(binary, [], work));
    samples.plainCpp.push(...(await repeat(1, compile)));
  }
  for (const [lang, code, build] of [
    ['cpp', HEAVY_CPP, (file, out) => ['g++', ['-std=c++17', '-O2', '-o', out, file]]],
    ['go', HEAVY_GO, (file, out) => ['go', ['build', '-o', out, file]]],
  ]) {
    const file = join(work, `heavy.${lang}`);
    const out = join(work, `heavy-${lang}`);
    writeFileSync(file, code);
    const [tool, args] = build(file, out);
    const built = spawnSync(tool, args, { cwd: work, env: { ...process.env, GO111MODULE: 'off' } });
    if (built.status !== 0) throw new Error(`${tool} failed: ${built.stderr}`);
    await exec(service, { lang, code });
    samples[`repeated-${lang}`] = [];
    samples[`binary-${lang}`] = [];
    for (let round = 0; round < 5; round++) {
      samples[`repeated-${lang}`].push(...(await repeat(1, () => exec(service, { lang, code }))));
      samples[`binary-${lang}`].push(...(await repeat(1, () => time(out, [], work))));
    }
  }
  return samples;
}

/** Calls of one session while many others start, each with a first result. */
async function measureBurst(service) {
  const bystander = () => exec(service, { lang: 'py', code: 'x = 1', entity_id: 'bystander' });
  await repeat(100, bystander);
  const quiet = await repeat(400, bystander);
  const busy = [];
  let answering = 0;
  for (let round = 0; round < 3; round++) {
    let left = BURST;
    const starts = Array.from({ length: BURST }, async (_, index) => {
      const { stdout } = await exec(service, {
        lang: 'py',
        code: 'print(1 + 1)',
        entity_id: `burst-${round}-${index}`,
      });
      answering += stdout === '2\n' ? 1 : 0;
      left -= 1;
    });
    while (left > 0) busy.push(...(await repeat(1, bystander)));
    await Promise.all(starts);
    await Promise.all(
      Array.from({ length: BURST }, async (_, index) => {
        const { session_id } = await exec(service, { lang: 'py', code: '0', entity_id: `burst-${round}-${index}` });
        await request(service.port, 'DELETE', `/sessions/${session_id}`);
      }),
    );
  }
  return { quiet, busy, answering, asked: BURST * 3 };
}

/** A file of a gigabyte, up and down; how much memory the server has used more than before, at the most. */
async function measureGigabyte(service) {
  const status = () => readFileSync(`/proc/${service.pid}/status`, 'utf8');
  const kilobytes = (name) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status())?.[1]) * 1024;
  const before = kilobytes('VmRSS');
  writeFileSync(`/proc/${service.pid}/clear_refs`, '5');
  const chunk = Buffer.alloc(1 << 20, 'cuvette ');
  const boundary = 'bench';
  const start = performance.now();
  const answer = await request(service.port, 'POST', '/upload', {
    headers: { 'content-type': `multipart/form-data; boundary=${boundary}` },
    async write(outgoing) {
      outgoing.write(`--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="large.bin"\r\n\r\n`);
      for (let sent = 0; sent < GIGABYTE; sent += chunk.length) {
        if (!outgoing.write(chunk)) await new Promise((done) => outgoing.once('drain', done));
      }
      outgoing.end(`\r\n--${boundary}--\r\n`);
    },
  });
  const uploaded = performance.now();
  const { session_id, files } = JSON.parse(answer.text);
  const { bytes } = await request(service.port, 'GET', `/download/${session_id}/${files[0].id}`, { isDiscarded: true });
  if (bytes !== GIGABYTE) throw new Error(`of ${GIGABYTE} bytes, ${bytes} came back`);
  const grown = kilobytes('VmHWM') - before;
  await request(service.port, 'DELETE', `/files/${session_id}/${files[0].id}`);
  return { grown, upload: (uploaded - start) / 1000, download: (performance.now() - uploaded) / 1000 };
}

// -- processes and requests -----------------------------------------------------------------------

async function startPeer(python, root) {
  const child = spawn(python, [join(root, 'bench', 'per_call_client.py')], { stdio: ['ignore', 'pipe', 'ignore'] });
  const port = await new Promise((done) => child.stdout.once('data', (data) => done(Number(data))));
  return { child, port };
}

async function startService(program, env, work, args = []) {
  const folder = join(work, 'service');
  mkdirSync(folder, { recursive: true });
  const child = spawn(process.execPath, [program, 'serve', '--port', '0', '--project', folder, ...args], {
    env,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  let text = '';
  const port = await new Promise((done) =>
    child.stdout.on('data', (data) => {
      text += data;
      const found = /http:\/\/127\.0\.0\.1:(\d+)/.exec(text);
      if (found) done(Number(found[1]));
    }),
  );
  return { child, pid: child.pid, port, banner: () => text };
}

const agent = new http.Agent({ keepAlive: true });

function request(port, method, path, { headers = {}, body, write, isDiscarded } = {}) {
  return new Promise((resolve, reject) => {
    const outgoing = http.request({ host: '127.0.0.1', port, method, path, agent, headers }, (incoming) => {
      const parts = [];
      let bytes = 0;
      incoming.on('data', (data) => {
        bytes += data.length;
        if (!isDiscarded) parts.push(data);
      });
      incoming.on('end', () => resolve({ status: incoming.statusCode, text: Buffer.concat(parts).toString(), bytes }));
      incoming.on('error', reject);
    });
    outgoing.on('error', reject);
    if (write) write(outgoing).catch(reject);
    else outgoing.end(body);
  });
}

async function post(port, path, value) {
  const body = JSON.stringify(value);
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
  const { status, text } = await request(port, 'POST', path, { headers, body });
  if (status !== 200) throw new Error(`${path} answered ${status}: ${text}`);
  return JSON.parse(text);
}

function exec({ port }, body) {
  return post(port, '/exec', body);
}

/** Seconds to the first piece of what the code printed. */
function firstByte({ port }) {
  const body = JSON.stringify({ lang: 'py', code: 'print(1)\nimport time\ntime.sleep(0.05)', entity_id: 'bench' });
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
  const start = performance.now();
  return new Promise((resolve, reject) => {
    let seen;
    const outgoing = http.request(
      { host: '127.0.0.1', port, method: 'POST', path: '/exec/stream', agent, headers },
      (incoming) => {
        incoming.on('data', (data) => {
          if (seen === undefined && data.includes('"stream"')) seen = performance.now() - start;
        });
        incoming.on('end', () => resolve(seen));
      },
    );
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

function time(command, args, cwd) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd, stdio: 'ignore' });
    child.once('error', reject);
    child.once('exit', (code) => (code === 0 ? resolve() : reject(new Error(`${command} ended with ${code}`))));
  });
}

/** Seconds of each round; a round may give its own milliseconds. */
async function repeat(count, act) {
  const samples = [];
  for (let round = 0; round < count; round++) {
    const start = performance.now();
    const own = await act();
    samples.push((typeof own === 'number' ? own : performance.now() - start) / 1000);
  }
  return samples;
}

function sleep(milliseconds) {
  return new Promise((done) => setTimeout(done, milliseconds));
}
