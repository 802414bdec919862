import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { sweepRecordSchema } from '../../../src/lab/site-sweep/sweep-record.ts';
import { createToyEngine, NUMBER } from '../toy-engine.ts';
import { toyLab } from '../toy-lab.ts';

const target = { positive_tokens: ['are'], negative_tokens: ['is'] };

interface Swept {
  state: string;
  picture: string;
  maps: { direction: string; layers: number[]; positions: number[]; state: string[][]; interchange: number[][] }[];
  best: { layer: number; position: number; interchange: { value: number }; protocol: Record<string, unknown> }[];
}

async function preparedSweep(engine = createToyEngine()) {
  const lab = toyLab(undefined, engine);
  const capture_id = await lab.capturePairs(40);
  const sweep = async (args: Record<string, unknown> = {}, signal?: AbortSignal) =>
    (await lab.call('sweep', { capture_id, ...target, ...args }, signal)) as unknown as Swept & Record<string, unknown>;
  return { ...lab, capture_id, sweep };
}

describe('the answer of sweep', () => {
  test('has a map of all layers at the positions of the capture, as numbers and as a picture', async () => {
    const { sweep } = await preparedSweep();
    const answer = await sweep({ positions: [-3, 'end_question'] });
    expect(answer.maps).toMatchObject([{ direction: 'difference-of-means', layers: [0, 1], positions: [-3, -1] }]);
    expect(answer.maps[0]?.state).toHaveLength(2);
    expect(answer.picture).toMatch(/layer 1 .*\n ?layer 0/);
    expect(answer).toMatchObject({ family: 1, n_samples: 40, multiplicity: { level: 0.0125 } });
    expect(answer).not.toHaveProperty('record');
    const byDefault = await sweep();
    expect(byDefault.maps[0]?.positions).toEqual([-1]);
  });

  test('goes on to the protocol at a site with the arguments that it names', async () => {
    const { sweep, call } = await preparedSweep();
    const { best } = await sweep();
    const [first] = best;
    const verdict = await call('causality_protocol', first?.protocol);
    expect(verdict).toMatchObject({ effects: { interchange: { value: first?.interchange.value } } });
  });

  test('tries probes at every site, beside a direction that is fitted or without one', async () => {
    const { sweep, call } = await preparedSweep();
    await call('load_probe', { probe_id: 'number', direction: NUMBER, layer: 0 });
    const directions = async (args: Record<string, unknown>) =>
      (await sweep(args)).maps.map(({ direction }) => direction);
    expect(await directions({ probe_ids: ['number'] })).toEqual(['number']);
    expect(await directions({ probe_ids: ['number'], fit: 'logistic' })).toEqual(['logistic', 'number']);
  });

  test('rests on a stored record, and comes after reports of progress', async () => {
    const { sweep, told } = await preparedSweep();
    const answer = await sweep({ include_evidence: true });
    const kept = sweepRecordSchema.parse(JSON.parse(readFileSync(String(answer.record_file), 'utf8')));
    expect(kept).toEqual(JSON.parse(JSON.stringify(answer.record)));
    expect(told.filter((line) => /^The sweep is \d+ % done$/.test(line)).length).toBeGreaterThan(1);
  });
});

describe('a sweep among the questions of a lab session', () => {
  test('counts once, however many sites it has, and not again when asked again', async () => {
    const { sweep, call } = await preparedSweep();
    await sweep({ positions: [-3, -2, -1] });
    await sweep({ positions: [-3, -2, -1] });
    expect(await call('colab_status')).toMatchObject({ family: 1, error_spent: expect.closeTo(0.0125, 10) });
    expect(await sweep()).toMatchObject({ family: 2 });
  });

  test('is not counted when it is cancelled', async () => {
    const engine = createToyEngine();
    const { sweep, call } = await preparedSweep(engine);
    const stop = new AbortController();
    const { run } = engine;
    let requests = 0;
    engine.run = (request, signal) => {
      if (++requests === 3) stop.abort();
      return run(request, signal);
    };
    await expect(sweep({}, stop.signal)).rejects.toThrow(/abort/i);
    expect(await call('colab_status')).toMatchObject({ family: 0 });
  });
});
