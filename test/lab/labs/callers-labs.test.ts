import { describe, expect, onTestFinished, test } from 'vitest';
import {
  admitted,
  type CallersLabs,
  type CallersLabsOptions,
  createCallersLabs,
} from '../../../src/lab/labs/callers-labs.ts';
import type { OpenLocal } from '../../../src/lab/labs/labs.ts';
import { createLab } from '../../../src/lab/local/local-lab.ts';
import { temporaryFolder } from '../../temporary-folder.ts';
import { createToyEngine } from '../toy-engine.ts';

const context = { signal: new AbortController().signal, progress: () => {} };

/** With the model that ships, or with toys in its place. */
function open(options: Partial<CallersLabsOptions> = {}) {
  const folder = temporaryFolder();
  const places = { data: folder, cache: folder, project: folder };
  const labs = createCallersLabs({ ...places, endpoints: ['demo', './listed'], admitsUrls: false, ...options });
  onTestFinished(() => labs.close());
  return labs;
}

function openToys(options: Partial<CallersLabsOptions> = {}) {
  const opened: string[] = [];
  const folder = temporaryFolder();
  const openLocal: OpenLocal = async (model) => {
    opened.push(model);
    return createLab(createToyEngine({ id: model }), { data: folder, cache: folder, project: folder }, undefined);
  };
  return { labs: open({ openLocal, ...options }), opened };
}

const NUMBERS = { probe_id: 'mine', direction: Array.from({ length: 64 }, () => 1), layer: 0 };
const probesOf = async (labs: CallersLabs, caller: string) => {
  const { answer } = await labs.of(caller).call('default', 'list_probes', {}, context);
  return (answer.probes as { id: string }[]).map(({ id }) => id);
};

describe('what callers of a service may attach', () => {
  test.each(['/etc', './other', 'org/model', 'https://example.org', ''])(
    'is not %j, which nobody admitted',
    async (endpoint) => {
      const { labs, opened } = openToys();
      await expect(labs.of('ada').attach('default', endpoint, undefined, context)).rejects.toMatchObject({
        code: 'forbidden',
        message: expect.stringContaining(
          'It admits: demo, ./listed. Whoever runs it can admit more with --lab-endpoints',
        ),
      });
      expect(opened).toEqual([]);
    },
  );

  test('is what the operator listed', async () => {
    const { labs, opened } = openToys();
    await labs.of('ada').attach('default', './listed', undefined, context);
    expect(opened).toEqual(['./listed']);
  });

  test('is the shipped model where only this machine can call, and nothing where others can', () => {
    expect(admitted(undefined, true)).toEqual(['demo']);
    expect(admitted(undefined, false)).toEqual([]);
    expect(admitted(['./listed'], true)).toEqual(['./listed']);
  });

  test('does not include the shipped model where the operator left it out', async () => {
    const { labs } = openToys({ endpoints: ['./listed'] });
    await expect(labs.of('ada').call('default', 'colab_status', {}, context)).rejects.toMatchObject({
      code: 'forbidden',
    });
  });
});

describe('the labs of two callers', () => {
  test('share neither probes nor names', async () => {
    const labs = open();
    await labs.of('ada').attach('named', 'demo', undefined, context);
    await labs.of('ada').call('default', 'load_probe', NUMBERS, context);
    expect(await probesOf(labs, 'ada')).toEqual(['mine']);
    expect(await probesOf(labs, 'bob')).toEqual([]);
    await expect(labs.of('bob').call('named', 'colab_status', {}, context)).rejects.toMatchObject({
      code: 'unknown_session',
    });
  });

  test('open no file that a caller names', async () => {
    const labs = open();
    const probe = { probe_id: 'p', source: '/etc/hostname', layer: 0 };
    await expect(labs.of('ada').call('default', 'load_probe', probe, context)).rejects.toMatchObject({
      code: 'forbidden',
    });
    const hub = { probe_id: 'p', source: 'hf://org/private#probe', layer: 0 };
    await expect(labs.of('ada').call('default', 'load_probe', hub, context)).rejects.toMatchObject({
      code: 'forbidden',
    });
  });
});

describe('when the labs of the most callers are open,', () => {
  test('the least recently used are evicted, and opened again by the next call', async () => {
    const { labs, opened } = openToys({ most: 2 });
    for (const caller of ['ada', 'bob', 'cleo', 'ada'])
      await labs.of(caller).call('default', 'colab_status', {}, context);
    expect(opened).toHaveLength(4);
    await labs.of('ada').call('default', 'colab_status', {}, context);
    expect(opened).toHaveLength(4);
  });

  test('labs that are at work are not evicted, and the next caller is told to try again', async () => {
    let finish = () => {};
    const waiting = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const labs = open({
      most: 1,
      openLocal: async () => ({ call: async () => waiting.then(() => ({ protocol: 1 })), close: async () => {} }),
    });
    const busy = labs.of('ada').call('default', 'colab_status', {}, context);
    await expect(labs.of('bob').call('default', 'colab_status', {}, context)).rejects.toMatchObject({
      code: 'rate_limited',
    });
    finish();
    await busy;
  });
});
