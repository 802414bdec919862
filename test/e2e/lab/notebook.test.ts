/** Runs every code cell of the notebook for Colab, with a real lab behind a fake tunnel. */

import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { gone, isAlive, linkTools, MAIN, ROOT, useHome } from '../harness.ts';
import { type FakeTunnels, makeTunnels } from './fake-tunnels.ts';
import { PATIENCE } from './patience.ts';

const home = useHome({ preload: 'none' });
const NOTEBOOK = join(ROOT, 'docs', 'colab.ipynb');
const RUNNER = join(ROOT, 'test', 'e2e', 'lab', 'notebook-runner.py');
const PYTHON = execFileSync('python3', ['-c', 'import sys; print(sys.executable)'], { encoding: 'utf8' }).trim();
const HF_TOKEN = 'hf_AbCdEfGhIjKlMnOp';
const NGROK_AUTHTOKEN = '2qWeRtYuIoPaSdFgHjKl';
const NODE_DIST = 'https://nodejs.org/dist/latest-v22.x';

interface Cell {
  id: string;
  cell_type: string;
  source: string[];
  outputs?: unknown[];
  execution_count?: number | null;
}

interface Options {
  cwd: string;
  path: string;
  cells: string[];
  secrets?: Record<string, string>;
  env?: Record<string, string>;
  internet?: Record<string, string>;
  isColab?: boolean;
}

interface Outcome {
  code: number | null;
  output: string;
}

/** Standard output and error together, as a notebook shows them. */
async function runCells({
  cwd,
  path,
  cells,
  secrets = {},
  env = {},
  internet = {},
  isColab = true,
}: Options): Promise<Outcome> {
  const child = spawn(PYTHON, [RUNNER], { cwd, env: home.env({ PATH: path, HOME: cwd, ...env }), stdio: 'pipe' });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  child.stdin.end(JSON.stringify({ notebook: NOTEBOOK, cells, secrets, internet, is_colab: isColab }));
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  return { code, output };
}

/** In place of npx: this very Cuvette, with the model that ships in place of one that needs a GPU. Notes what it was asked for. */
function makeNpx(folder: string): { bin: string; asked(): { args: string[]; env: Record<string, string> } } {
  const bin = join(folder, 'npx-bin');
  const note = join(folder, 'npx.json');
  mkdirSync(bin, { recursive: true });
  const source = `#!${process.execPath}
const args = process.argv.slice(2);
require('node:fs').writeFileSync(${JSON.stringify(note)}, JSON.stringify({ args, env: process.env }));
if (args[0] !== '-y' || !['cuvette', './cuvette-0.1.0.tgz'].includes(args[1])) throw new Error('npx knows only cuvette here');
const given = args.slice(2);
for (const flag of ['--engine', '--dtype', '--quantization', '--model'])
  if (given.includes(flag)) given.splice(given.indexOf(flag), 2);
const child = require('node:child_process').spawn(process.execPath, [${JSON.stringify(MAIN)}, ...given, ...(given.includes('--port') ? [] : ['--port', '0'])], { stdio: 'inherit' });
process.on('SIGTERM', () => child.kill('SIGTERM'));
child.on('exit', (code) => process.exit(code ?? 1));
`;
  writeFileSync(join(bin, 'npx'), source);
  chmodSync(join(bin, 'npx'), 0o755);
  return { bin, asked: () => JSON.parse(readFileSync(note, 'utf8')) };
}

function makeMachine(scripts?: { before?: string; after?: string }) {
  const cwd = home.project();
  const npx = makeNpx(cwd);
  const tunnels: FakeTunnels = makeTunnels(cwd, scripts);
  return { cwd, npx, tunnels, path: [npx.bin, tunnels.PATH].join(delimiter) };
}

describe('the notebook file', () => {
  const notebook = JSON.parse(readFileSync(NOTEBOOK, 'utf8'));
  const cells: Cell[] = notebook.cells;

  test('is a notebook of format 4.5 with an id for every cell', () => {
    expect(notebook).toMatchObject({ nbformat: 4, nbformat_minor: 5, metadata: { kernelspec: { name: 'python3' } } });
    expect(new Set(cells.map(({ id }) => id)).size).toBe(cells.length);
    for (const { id, cell_type, source } of cells) {
      expect(id).toMatch(/^[\w-]{1,64}$/);
      expect(['code', 'markdown']).toContain(cell_type);
      expect(source.every((line) => typeof line === 'string')).toBe(true);
    }
  });

  test('has no outputs', () => {
    const code = cells.filter(({ cell_type }) => cell_type === 'code');
    expect(code.map(({ outputs, execution_count }) => [outputs, execution_count])).toEqual(code.map(() => [[], null]));
  });
});

test(
  'the notebook runs from top to bottom with a lab behind a tunnel and never prints a secret',
  async () => {
    const { cwd, npx, tunnels, path } = makeMachine();
    const cells = ['settings', 'node', 'try', 'tunnel', 'secrets', 'start', 'news', 'stop', 'stop'];
    const { code, output } = await runCells({ cwd, path, cells, secrets: { HF_TOKEN, NGROK_AUTHTOKEN } });
    expect(code, output).toBe(0);
    expect(output).toMatch(/It works: demo, \d+ layers, on cpu/);
    expect(output).toMatch(/HF_TOKEN: found\nNGROK_AUTHTOKEN: found/);
    expect(output).toMatch(/colab_attach\(endpoint="https:\/\/start-1\.trycloudflare\.com", token="[\w-]{43}"\)/);
    expect(output).toMatch(/The lab runs\..*The lab has stopped\..*No lab was running\./s);
    expect(output).not.toContain(HF_TOKEN);
    expect(output).not.toContain(NGROK_AUTHTOKEN);

    const { args, env } = npx.asked();
    const model = ['--engine', 'torch', '--model', 'Qwen/Qwen2.5-7B-Instruct'];
    expect(args).toEqual(['-y', 'cuvette', 'lab', 'serve', ...model, '--tunnel', 'cloudflared', '--dtype', 'auto']);
    expect(env).toMatchObject({ HF_TOKEN, NGROK_AUTHTOKEN, CUVETTE_TORCH_PYTHON: PYTHON });
    expect(tunnels.last().env.HF_TOKEN).toBeUndefined();
    expect(statSync(join(cwd, 'cuvette-lab.log')).mode & 0o777).toBe(0o600);
    await gone(tunnels.last().pid);
  },
  PATIENCE,
);

test(
  'outside Colab, the notebook takes secrets from the environment and passes ngrok its token',
  async () => {
    const { cwd, npx, tunnels, path } = makeMachine();
    writeFileSync(join(cwd, 'cuvette-0.1.0.tgz'), 'as npm pack makes it');
    const cells = ['settings', '!TUNNEL, QUANTIZATION = "ngrok", "4bit"', 'node', 'tunnel', 'secrets', 'start', 'stop'];
    const { code, output } = await runCells({ cwd, path, cells, env: { NGROK_AUTHTOKEN }, isColab: false });
    expect(code, output).toBe(0);
    expect(output).toMatch(/HF_TOKEN: none\nNGROK_AUTHTOKEN: found/);
    expect(output).toContain('colab_attach(endpoint="https://start-1.ngrok-free.app"');
    expect(output).not.toContain(NGROK_AUTHTOKEN);
    expect(npx.asked().args[1], 'the package that was uploaded').toBe('./cuvette-0.1.0.tgz');
    expect(npx.asked().args).toEqual(expect.arrayContaining(['--tunnel', 'ngrok', '--quantization', '4bit']));
    expect(tunnels.last().env.NGROK_AUTHTOKEN).toBe(NGROK_AUTHTOKEN);
    expect(isAlive(tunnels.last().pid)).toBe(false);
  },
  PATIENCE,
);

describe('when the notebook cannot start a lab,', () => {
  test('a tunnel that fails is reported in its own words, without the token that it repeats', async () => {
    const { cwd, path } = makeMachine({ before: "end(1, 'Your authtoken: ' + process.env.NGROK_AUTHTOKEN);" });
    const cells = ['settings', '!TUNNEL = "ngrok"', 'node', 'tunnel', 'secrets', 'start'];
    const { code, output } = await runCells({ cwd, path, cells, secrets: { NGROK_AUTHTOKEN } });
    expect(code).toBe(1);
    expect(output).toMatch(/Your authtoken: ….*The lab ended with code 69/s);
    expect(output).not.toContain(NGROK_AUTHTOKEN);
  });

  test('ngrok without its token is refused before anything is loaded', async () => {
    const { cwd, path } = makeMachine();
    const cells = ['settings', '!TUNNEL = "ngrok"', 'node', 'tunnel', 'secrets'];
    const { code, output } = await runCells({ cwd, path, cells });
    expect(code).toBe(1);
    expect(output).toContain('ngrok needs NGROK_AUTHTOKEN');
  });
});

describe('on a bare machine, the notebook', () => {
  const kind = process.arch === 'arm64' ? 'linux-arm64' : 'linux-x64';
  const name = `node-v22.99.0-${kind}`;

  /** A machine whose Node is too old, or not there, and an archive as nodejs.org has it. */
  function makeBare(checksum?: string): { cwd: string; path: string; internet: Record<string, string> } {
    const cwd = home.project();
    const bin = join(cwd, name, 'bin');
    mkdirSync(bin, { recursive: true });
    for (const program of ['node', 'npx']) {
      writeFileSync(join(bin, program), '#!/bin/sh\necho v22.99.0\n');
      chmodSync(join(bin, program), 0o755);
    }
    const archive = join(cwd, `${name}.tar.xz`);
    execFileSync('tar', ['-cJf', archive, '-C', cwd, name]);
    const sum = checksum ?? createHash('sha256').update(readFileSync(archive)).digest('hex');
    const sums = join(cwd, 'sums');
    writeFileSync(sums, `${'0'.repeat(64)}  node-v22.99.0-darwin-x64.tar.xz\n${sum}  ${name}.tar.xz\n`);

    const old = join(cwd, 'old');
    mkdirSync(old);
    linkTools(old, ['sh']);
    for (const program of ['node', 'npx']) {
      writeFileSync(join(old, program), '#!/bin/sh\necho v18.20.4\n');
      chmodSync(join(old, program), 0o755);
    }
    return {
      cwd,
      path: old,
      internet: { [`${NODE_DIST}/SHASUMS256.txt`]: sums, [`${NODE_DIST}/${name}.tar.xz`]: archive },
    };
  }

  test("fetches a newer Node and the tunnel's program", async () => {
    const { cwd, path, internet } = makeBare();
    const program = join(cwd, 'program');
    writeFileSync(program, '#!/bin/sh\n');
    const arch = process.arch === 'arm64' ? 'arm64' : 'amd64';
    const release = `https://github.com/cloudflare/cloudflared/releases/latest/download/cloudflared-linux-${arch}`;
    const cells = ['settings', 'node', 'tunnel'];
    const { code, output } = await runCells({ cwd, path, cells, internet: { ...internet, [release]: program } });
    expect(code, output).toBe(0);
    expect(output).toContain('Node 22.99');
    expect(output).toContain(`cloudflared is at ${join(cwd, '.cuvette-notebook', 'bin', 'cloudflared')}`);
  });

  test('does not use a Node that does not match its checksum', async () => {
    const { cwd, path, internet } = makeBare('f'.repeat(64));
    const { code, output } = await runCells({ cwd, path, cells: ['settings', 'node'], internet });
    expect(code).toBe(1);
    expect(output).toContain('not what its checksum says');
  });
});
