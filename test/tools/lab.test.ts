import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import * as z from 'zod';
import { createLabs } from '../../src/lab/labs/labs.ts';
import { createLab } from '../../src/lab/local/local-lab.ts';
import { createLog } from '../../src/log.ts';
import type { Sessions } from '../../src/sessions/sessions.ts';
import { callTool } from '../../src/tools/call.ts';
import { projectFiles } from '../../src/tools/caller-files.ts';
import { createLabTools } from '../../src/tools/lab.ts';
import { createToyEngine, toyPairs } from '../lab/toy-engine.ts';
import { temporaryFolder } from '../temporary-folder.ts';

function open() {
  const folder = temporaryFolder();
  const places = { data: folder, cache: folder, project: folder };
  const labs = createLabs({
    ...places,
    openLocal: async (id) => createLab(createToyEngine({ id }), places, undefined),
  });
  onTestFinished(() => labs.close());
  const tools = createLabTools({ labsOf: () => labs, files: projectFiles(folder) });
  // Tools of the lab have no use for code sessions.
  const context = { sessions: {} as Sessions, signal: new AbortController().signal, progress: () => {} };
  const call = async (name: string, args: Record<string, unknown> = {}) => {
    const tool = tools.find((one) => one.name === name);
    if (!tool) throw new Error(`There is no tool ${name}.`);
    const answer = await callTool(tool, args, context, createLog('silent'));
    // What the schema promises is what comes, after the journey through JSON.
    if (!answer.isError) tool.output.strict().parse(JSON.parse(JSON.stringify(answer.structured)));
    return answer;
  };
  return { folder, tools, call };
}

const schemaOf = (input: z.ZodObject) =>
  z
    .object({
      properties: z.record(
        z.string(),
        z.looseObject({ default: z.unknown().optional(), description: z.string().optional() }),
      ),
      required: z.array(z.string()).default([]),
    })
    .parse(z.toJSONSchema(input, { io: 'input' }));

/** Arguments whose name says all there is to say, or that mean the same as in capture_acts. */
const SELF_EVIDENT =
  'prompts capture_id layer position labels method max_new_tokens seed limit license source_url include_training_rows structure_matched_labels'.split(
    ' ',
  );

describe('the tools of the lab', () => {
  const labs = createLabs({ data: '', cache: '', project: '' });
  const tools = createLabTools({ labsOf: () => labs, files: projectFiles('') });

  test('have the names that agents know, and five more', () => {
    expect(tools.map(({ name }) => name)).toEqual([
      'colab_attach',
      'colab_detach',
      'colab_status',
      'capture_acts',
      'train_probe',
      'load_probe',
      'list_probes',
      'probe_eval',
      'steer',
      'sae_lookup',
      'patch_map',
      'sweep',
      'causality_protocol',
      'list_manifests',
    ]);
  });

  test.each([
    ['colab_attach', ['endpoint'], { session_name: 'default' }],
    ['colab_status', [], { session_name: 'default' }],
    ['list_probes', [], { session_name: 'default' }],
    ['capture_acts', ['layers'], { prompt: undefined, positions: ['end_question'], session_name: 'default' }],
    ['probe_eval', ['probe_id', 'capture_id'], { labels: undefined, layer: undefined }],
    ['steer', ['layer', 'direction_id', 'alpha'], { prompt: undefined, max_new_tokens: 32, control_tokens: undefined }],
    ['sae_lookup', ['sae_id', 'capture_id', 'layer'], { top_k: 32 }],
    ['patch_map', ['capture_id'], { place: 'resid_post', method: 'attribution', layers: undefined, top_k: 8 }],
    [
      'causality_protocol',
      ['capture_id'],
      {
        probe_id: undefined,
        labels: undefined,
        alpha_sweep: undefined,
        n_random_seeds: 5,
        structure_matched_capture_id: undefined,
        structure_matched_labels: undefined,
        feature_name: undefined,
      },
    ],
  ])('%s takes the arguments that agents know', (name, required, optional) => {
    const tool = tools.find((one) => one.name === name);
    const { properties, required: needed } = schemaOf(tool?.input ?? z.object({}));
    expect(needed).toEqual(required);
    for (const [argument, value] of Object.entries(optional)) {
      expect(Object.keys(properties)).toContain(argument);
      expect(properties[argument]?.default, argument).toEqual(value);
    }
  });

  test('say what each argument is where its name does not, in snake_case', () => {
    for (const { name, description, input, output } of tools) {
      expect(description.length, name).toBeLessThan(600);
      for (const [argument, { description: told }] of Object.entries(schemaOf(input).properties)) {
        expect(argument).toMatch(/^[a-z]+(_[a-z]+)*$/);
        if (!SELF_EVIDENT.includes(argument)) expect(told, `${name}.${argument}`).toBeTypeOf('string');
      }
      for (const field of Object.keys(output.shape)) expect(field).toMatch(/^[a-z0-9]+(_[a-z0-9]+)*$/);
    }
  });
});

describe('an agent', () => {
  test('goes from attach to verdict, with answers that keep to their schemas', async () => {
    const { call, folder } = open();
    expect((await call('colab_attach', { endpoint: 'demo' })).structured).toMatchObject({
      ok: true,
      endpoint: 'demo',
      health: { d_model: 16 },
    });
    const { prompts, labels, pairs } = toyPairs(14);
    const captured = await call('capture_acts', { prompts, labels, pair_ids: pairs, layers: [0] });
    const { capture_id } = captured.structured;
    expect(JSON.parse(captured.text)).toMatchObject({ capture_id });
    await call('train_probe', { probe_id: 'number', capture_id, layer: 0, held_out: 0.5 });
    expect((await call('probe_eval', { probe_id: 'number', capture_id })).structured).toMatchObject({ auroc: 1 });
    expect(
      (await call('steer', { prompt: 'the red cat', layer: 0, direction_id: 'number', alpha: 1, max_new_tokens: 2 }))
        .isError,
    ).toBeUndefined();
    const verdict = await call('causality_protocol', { probe_id: 'number', capture_id, report: true });
    expect(verdict.structured).toMatchObject({
      verdict: expect.any(String),
      report_file: expect.stringContaining(folder),
    });
    expect(verdict.structured).not.toHaveProperty('record');
    expect(readFileSync(String(verdict.structured.report_file), 'utf8')).toContain(
      String(verdict.structured.manifest_sha256),
    );
    expect((await call('list_probes')).structured).toMatchObject({ probes: [{ id: 'number' }] });
    expect((await call('list_manifests', { limit: 3 })).structured.manifests).toHaveLength(3);
  });

  test('is told when it works with the model that ships because it chose none', async () => {
    const { call } = open();
    expect((await call('colab_status')).structured).toMatchObject({
      model_id: 'demo',
      lab_note: expect.stringContaining('ships with Cuvette'),
    });
  });

  test('gets a failed lab call as an error answer', async () => {
    const { call } = open();
    const answer = await call('probe_eval', { probe_id: 'x', capture_id: 'y' });
    expect(answer).toMatchObject({ isError: true, structured: { error: { code: 'unknown_probe' } } });
    expect((await call('capture_acts', { prompt: 'the' })).text).toContain('layers');
    expect((await call('colab_status', { session_name: 'other' })).text).toContain('no lab session other');
  });

  test('can give prompts by a file of the project', async () => {
    const { call, folder } = open();
    const rows = [
      { prompt: 'the cats', label: 1, pair_id: 'a' },
      { prompt: 'the cat', label: 0, pair_id: 'a' },
    ];
    writeFileSync(join(folder, 'rows.jsonl'), `${rows.map((row) => JSON.stringify(row)).join('\n')}\n`);
    writeFileSync(join(folder, 'rows.json'), JSON.stringify(rows));
    writeFileSync(join(folder, 'rows.txt'), 'the cats\nthe cat\n');
    const capture = (prompts_file: string) => call('capture_acts', { prompts_file, layers: [0] });
    const lines = await capture('rows.jsonl');
    expect(lines.structured).toMatchObject({ n_prompts: 2 });
    expect((await capture('rows.json')).structured.manifest_sha256).toBe(lines.structured.manifest_sha256);
    expect((await capture('rows.txt')).structured.capture_id).not.toBe(lines.structured.capture_id);
  });

  test.each([
    ['none.jsonl', undefined, /cannot be read/],
    ['empty.jsonl', '\n', /no prompts/],
    ['bad.jsonl', '{"prompt": "a"}\n{"prompt":\n', /line 2 is not JSON/],
    ['wrong.jsonl', '{"text": "a"}', /not a file of prompts/],
    ['labels.jsonl', '{"prompt": "a", "label": 1}\n{"prompt": "b"}', /label in some rows, but not in row 1/],
  ])('is told what is wrong with the file %s', async (name, content, message) => {
    const { call, folder } = open();
    if (content !== undefined) writeFileSync(join(folder, name), content);
    const answer = await call('capture_acts', { prompts_file: name, layers: [0] });
    expect(answer.isError).toBe(true);
    expect(answer.text).toMatch(message);
  });
});
