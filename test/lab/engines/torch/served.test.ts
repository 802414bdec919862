/** Tests that every primitive of a served torch lab answers as the embedded engine does in the agent's own process. */

import { lstatSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { askDemoQuestion, captureRows } from '../../../../src/lab/demo/experiments.ts';
import { demoQuestions } from '../../../../src/lab/demo/questions.ts';
import { createEmbeddedEngine } from '../../../../src/lab/engines/embedded/embedded-engine.ts';
import { openModelFolder } from '../../../../src/lab/models/open-model.ts';
import { packageFile } from '../../../../src/package-root.ts';
import { allGone, kill } from '../../../e2e/harness.ts';
import { CLOSE, disagreements } from '../../ground-truth/agreement.ts';
import { largestDifference } from '../../parity-reference.ts';
import { type RemoteAgent, SERVERS_SECRET, type ServedLab, useServed } from './served-lab.ts';

/** The model that ships, in the process of the agent itself. */
const HERE = 'here';
/** What differs where activations differ in their last bits, and where things are kept. */
const HASHES = /\.(hash|manifest_sha256|record_file|capture_id)$/;
/** And in a record, which engine it was. */
const OF_A_RECORD = /\.(hash|manifest_sha256|record_file)$|^\.record\.evidence\.model\.engine$/;
const [question] = demoQuestions(0);
const rows = question?.training ?? [];
const layer = question?.layer ?? 0;

const served = useServed();
let lab: ServedLab;
let agent: RemoteAgent;
beforeAll(async () => {
  ({ lab, agent } = await served.serveAndAttach());
  await agent.ask('colab_attach', { endpoint: 'demo', session_name: HERE });
});

/** The same asked of the lab elsewhere and of the one here: the answers must be the same. */
async function askBoth(tool: string, args: Record<string, unknown>, ignored = HASHES) {
  const theirs = await agent.ask(tool, { ...args, session_name: HERE });
  const ours = await agent.ask(tool, args);
  expect(disagreements(ours, theirs, { ignored: [ignored] })).toEqual([]);
  return ours;
}

test('a served torch lab has the same model as a local one, in another engine', async () => {
  const status = await askBoth('colab_status', {}, /\.engine$/);
  expect(status).toMatchObject({ engine: 'torch', device: 'cpu', dtype: 'float32' });
  expect((await agent.ask('colab_status', { session_name: HERE })).engine).toBe('embedded');
});

test('captures of a served torch lab hold the same values, and its code has them as tensors', async () => {
  const prompts = rows.slice(0, 6).map(({ prompt }) => prompt);
  const { capture_id, d_model } = await agent.ask('capture_acts', { prompts, layers: [layer] });
  const shape = await agent.beside(`captures['${capture_id}'].shape`);
  expect(shape.structured.output.trim()).toBe(`torch.Size([${prompts.length}, ${d_model}])`);
  const values = await agent.beside(`import json; print(json.dumps(captures['${capture_id}'].flatten().tolist()))`);

  const model = await openModelFolder(packageFile('models', 'demo'));
  const engine = await createEmbeddedEngine({ model, id: 'demo', threads: 1 }).finally(() => model.close());
  const taps = [{ point: { layer, place: 'resid_post' as const }, positions: [-1] }];
  const results = await engine.run({ prompts: await engine.tokenize(prompts), taps }).finally(() => engine.close());
  const expected = results.flatMap(({ activations }) => Array.from(activations?.[0] ?? []));
  expect(expected).toHaveLength(prompts.length * Number(d_model));
  expect(largestDifference(JSON.parse(values.structured.output), expected)).toBeLessThan(CLOSE);
});

describe('in a served torch lab,', () => {
  const probe_id = 'number';
  let captures: { there: unknown; here: unknown };
  beforeAll(async () => {
    // The layer of the autoencoder that ships, too.
    const layers = [...new Set([layer, 2])];
    captures = {
      there: await captureRows(agent.ask, rows, { layers }),
      here: await captureRows(agent.askedAt(HERE), rows, { layers }),
    };
  });

  /** The same asked of either's own capture. */
  async function askOfCaptures(tool: string, args: Record<string, unknown>) {
    const theirs = await agent.ask(tool, { ...args, capture_id: captures.here, session_name: HERE });
    const ours = await agent.ask(tool, { ...args, capture_id: captures.there });
    expect(disagreements(ours, theirs, { ignored: [HASHES] })).toEqual([]);
    return ours;
  }

  test('train_probe, list_probes and probe_eval agree to the last statistic', async () => {
    const trained = await askOfCaptures('train_probe', { probe_id, layer, method: 'difference-of-means' });
    expect(Number(trained.auroc)).toBeGreaterThan(0.9);
    const { probes } = await askBoth('list_probes', {});
    expect(probes).toMatchObject([{ id: probe_id }]);
    const evaluated = await askOfCaptures('probe_eval', { probe_id });
    expect(evaluated).toMatchObject({ evaluated_rows: 'held-out', random_directions: { n: 199 } });
    expect(evaluated.scores).not.toHaveLength(0);
  });

  test('load_probe takes a direction as numbers, and it scores alike', async () => {
    const direction = Array.from({ length: 64 }, (_, i) => Math.sin(i + 1));
    await askBoth('load_probe', { probe_id: 'wave', direction, bias: 0.25, layer, position: -1 });
    expect((await askOfCaptures('probe_eval', { probe_id: 'wave' })).n_samples).toBe(rows.length);
  });

  test('steer has the same effects, random directions included, and the same text', async () => {
    const prompts = question?.dataset.slice(0, 8).map(({ prompt }) => prompt);
    const dose = { alpha: 1, alpha_unit: 'swing', max_new_tokens: 8 };
    const steered = await askBoth('steer', { prompts, layer, direction_id: probe_id, ...dose });
    expect(steered).toMatchObject({ n_prompts: 8, random_directions: { n: 39 } });
    expect(Number(steered.flip_rate)).toBeGreaterThan(0);
  });

  test('sae_lookup finds the same features', async () => {
    const looked = await askOfCaptures('sae_lookup', { sae_id: 'demo', layer: 2 });
    expect(looked.top_features).not.toHaveLength(0);
  });
});

describe('the question of cuvette lab demo in a served torch lab', () => {
  test.each(demoQuestions(0))('$name: the same verdict, with the same statistics', async (asked) => {
    const theirs = (await askDemoQuestion(agent.askedAt(HERE), asked, 0)).answer;
    const ours = (await askDemoQuestion(agent.ask, asked, 0)).answer;
    expect(ours.verdict).toBe(asked.expected);
    expect(theirs.verdict).toBe(asked.expected);
    expect(disagreements(ours, theirs, { ignored: [OF_A_RECORD] })).toEqual([]);
  });
});

describe('the token of a served lab', () => {
  test('is only in a file that nobody else can read, in no log and on no command line', () => {
    const holders = [lab.home, agent.home].flatMap(({ root }) =>
      filesIn(root).filter((path) => holds(path, lab.token)),
    );
    expect(holders).toEqual([join(agent.home.data, 'lab', 'tokens.json')]);
    for (const path of holders) {
      expect(modeOf(path)).toBe(0o600);
      expect(modeOf(dirname(path))).toBe(0o700);
    }
    for (const log of [lab.stderr(), agent.log()]) {
      expect(log).not.toBe('');
      expect(log).not.toContain(lab.token);
    }
    const lines = readdirSync('/proc').map((pid) => procFile(pid, 'cmdline'));
    expect(lines.filter((line) => line.includes('serve')).length).toBeGreaterThan(0);
    expect(lines.filter((line) => line.includes(lab.token))).toEqual([]);
  });

  test('is not seen by code beside the model, nor is any secret of the server', async () => {
    expect(procFile(String(lab.pid), 'environ')).toContain(SERVERS_SECRET);
    const { structured } = await agent.beside(`import os
print(dict(os.environ))
for pid in ["self", os.getppid()]:
    print(open(f"/proc/{pid}/environ").read())
print(vars())`);
    expect(structured.output).toContain(`HOME=${lab.home.root}`);
    expect(structured.output).not.toContain(lab.token);
    expect(structured.output).not.toContain(SERVERS_SECRET);
  });
});

test('an agent that detaches keeps nothing of the lab, and finds it unchanged when it attaches again', async () => {
  await agent.beside('kept = 41');
  const { probes } = await agent.ask('list_probes');
  expect(probes).not.toHaveLength(0);
  expect(await agent.ask('colab_detach')).toEqual({ ok: true, endpoint: lab.url, session_name: 'default' });
  expect(filesIn(agent.home.root).filter((path) => holds(path, lab.token) || holds(path, lab.url))).toEqual([]);
  expect(await agent.ask('colab_status')).toMatchObject({ engine: 'embedded', model_id: 'demo' });
  expect((await agent.beside('kept')).text).toContain('colab_attach');
  await agent.ask('colab_attach', { endpoint: lab.url, token: lab.token });
  expect((await agent.beside('kept + 1')).structured.output.trim()).toBe('42');
  expect(await agent.ask('list_probes')).toEqual({ ...(await agent.ask('list_probes')), probes });
});

test('a lab that is stopped leaves no process and no socket, and keeps its files', async () => {
  const before = filesIn(lab.home.data);
  expect(before.some((path) => path.endsWith('.safetensors'))).toBe(true);
  kill(lab.pid, 'SIGTERM');
  expect(await lab.done).toBe(0);
  await allGone(lab.home.root);
  expect(filesIn(lab.home.runtime).filter((path) => lstatSync(path).isSocket())).toEqual([]);
  expect(filesIn(lab.home.data)).toEqual(before);
  expect(await agent.refused('colab_status')).toContain(lab.url);
});

/** Sockets and links, too. */
function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name));
}

function holds(path: string, text: string): boolean {
  return lstatSync(path).isFile() && readFileSync(path).includes(text);
}

function modeOf(path: string): number {
  return lstatSync(path).mode & 0o777;
}

/** Empty of what has ended meanwhile. */
function procFile(pid: string, name: string): string {
  try {
    return readFileSync(join('/proc', pid, name), 'utf8');
  } catch {
    return '';
  }
}
