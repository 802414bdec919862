import { describe, expect, test } from 'vitest';
import { runProtocol } from '../../../src/lab/causality/protocol.ts';
import { cellState, concludeSweep } from '../../../src/lab/site-sweep/conclude.ts';
import { runSweep } from '../../../src/lab/site-sweep/run-sweep.ts';
import { type SweepQuestion, sweepRecordSchema } from '../../../src/lab/site-sweep/sweep-record.ts';
import { createRandom } from '../../../src/lab/statistics/random.ts';
import { axis, createPlainEngine, plainPairs } from '../causality/plain-engine.ts';
import { ask, context } from '../causality/questions.ts';

const FIT = { name: 'fit', direction: { kind: 'fit', method: 'difference-of-means' } } as const;
const CONCEPT = { name: 'concept', direction: { kind: 'given' as const, vector: axis('concept') } };
const CORRELATE = { name: 'correlate', direction: { kind: 'given' as const, vector: axis('correlate') } };

function sweepOf(positions: number[], changes: Partial<SweepQuestion> = {}): SweepQuestion {
  return {
    sites: positions.map((position) => ({ layer: 0, place: 'resid_post', position })),
    directions: [FIT],
    dataset: plainPairs(24),
    target: { positive: ['yes'], negative: ['no'] },
    seed: 1,
    ...changes,
  };
}

async function found(question: SweepQuestion, family = 1) {
  const evidence = await runSweep(createPlainEngine(), question, context({ family }));
  const cells = evidence.cells.map((cell) => ({ ...cell, state: cellState(cell, evidence) }));
  return { evidence, cells, conclusion: concludeSweep(evidence) };
}

describe('a sweep over sites', () => {
  test('finds the position that the answer is read at, and excludes those that nothing passes through', async () => {
    const { cells, conclusion, evidence } = await found(sweepOf([-3, -2, -1]));
    expect(cells.map(({ state }) => state)).toEqual(['absent', 'absent', 'present']);
    expect(conclusion).toMatchObject({ state: 'present', best: [2] });
    expect(cells[2]?.component.value).toBeGreaterThan(0.9);
    expect(evidence.multiplicity).toMatchObject({ question: 1, level: 0.0125, tests: 1, rows: 16 });
  });

  test('tells directions apart at one site, which share their random directions', async () => {
    const { cells } = await found(
      sweepOf([-1], { directions: [CONCEPT, CORRELATE, { ...CONCEPT, name: 'the same' }] }),
    );
    expect(cells.map(({ state }) => state)).toEqual(['present', 'absent', 'present']);
    expect(cells.map(({ decodability }) => decodability.auroc)).toEqual([1, 1, 1]);
    expect(cells[2]?.test?.p).toBe(cells[0]?.test?.p);
  });

  test('measures what the protocol measures at the same site, to the last digit', async () => {
    const { dataset } = sweepOf([-1]);
    const { cells } = await found(sweepOf([-2, -1]));
    const { interchange, decodability } = await runProtocol(
      createPlainEngine(),
      ask({ dataset, direction: FIT.direction }),
      context(),
    );
    expect(cells[1]?.component).toMatchObject({ value: interchange.value, interval: interchange.interval });
    expect(cells[1]?.whole).toEqual(interchange.full);
    expect(cells[1]?.decodability).toMatchObject({ auroc: decodability.auroc, interval: decodability.interval });
  });

  test('changes no cell by the order of the sites, and only the adjustment by others beside them', async () => {
    const [all, reversed, alone] = [
      await found(sweepOf([-3, -2, -1])),
      await found(sweepOf([-1, -2, -3])),
      await found(sweepOf([-1])),
    ];
    expect(reversed.cells.toReversed()).toEqual(all.cells);
    expect(alone.cells[0]).toEqual(all.cells[2]);
    const both = await found(sweepOf([-1], { directions: [CONCEPT, CORRELATE] }));
    const one = await found(sweepOf([-1], { directions: [CONCEPT] }));
    expect(both.cells[0]?.test?.p).toBe(one.cells[0]?.test?.p);
    expect(both.cells[0]?.state).toBe(one.cells[0]?.state);
  });

  test('shares one level over all cells, and a later question has a smaller one', async () => {
    const [first, late] = [await found(sweepOf([-1])), await found(sweepOf([-1]), 40)];
    const adjusted = (one: typeof first) => one.cells[0]?.test?.adjusted ?? Number.NaN;
    const p = first.cells[0]?.test?.p ?? Number.NaN;
    expect(adjusted(first)).toBeCloseTo(p * (0.05 / first.evidence.multiplicity.level), 12);
    expect(adjusted(late)).toBeGreaterThan(adjusted(first));
    expect(late.cells[0]?.state).toBe('present');
  });

  test('calls nothing present where labels mean nothing', async () => {
    for (let seed = 1; seed <= 5; seed++) {
      const dataset = plainPairs(24, seed).map(({ pair: _, ...row }, i) => ({
        ...row,
        label: (i % 4 < 2 ? 1 : 0) as 0 | 1,
      }));
      const { conclusion, cells } = await found(sweepOf([-2, -1], { dataset, seed }));
      expect(conclusion.state).toBe('unknown');
      expect(conclusion.sentence).toContain('does not treat the classes differently');
      expect(cells.every(({ test: tested }) => tested === undefined)).toBe(true);
    }
  });

  test('calls none of many random directions present, though the behaviour is there', async () => {
    for (let seed = 1; seed <= 5; seed++) {
      const random = createRandom(seed, 'directions that mean nothing');
      const directions = Array.from({ length: 40 }, (_, i) => ({
        name: `random ${i}`,
        direction: { kind: 'given' as const, vector: Array.from(random.direction(axis('concept').length)) },
      }));
      const { cells, evidence } = await found(sweepOf([-1], { directions, seed }));
      expect(evidence.multiplicity.tests).toBe(40);
      expect(cells.filter(({ state }) => state === 'present')).toEqual([]);
    }
  });

  test('runs many sites in one request, and the model far fewer times than as many protocols', async () => {
    let requests = 0;
    const engine = createPlainEngine({ onRun: () => requests++ });
    const positions = [-5, -4, -3, -2, -1];
    const { runs } = await runSweep(engine, sweepOf(positions, { directions: [CONCEPT] }), context());
    expect(requests).toBeLessThan(12);
    let single = 0;
    await runProtocol(
      createPlainEngine(),
      ask({ dataset: plainPairs(24) }),
      context({ onProgress: (done) => (single = done) }),
    );
    expect(runs).toBeLessThan((positions.length * single) / 5);
  });

  test('never tests on rows that a probe was trained on', async () => {
    const direction = { ...CONCEPT.direction, trainedOn: [0, 2, 4, 6] };
    const { evidence } = await found(sweepOf([-1], { directions: [{ name: 'probe', direction }, FIT] }));
    expect(evidence.split).toMatchObject({ by: 'given', discovery: [0, 1, 2, 3, 4, 5, 6, 7] });
  });

  test('stops when it is aborted', async () => {
    const stop = new AbortController();
    const engine = createPlainEngine({ onRun: (_, number) => number === 3 && stop.abort() });
    await expect(runSweep(engine, sweepOf([-2, -1]), context({ signal: stop.signal }))).rejects.toThrow(/abort/i);
  });

  test('is answered anew from its stored record alike', async () => {
    const question = sweepOf([-2, -1]);
    const { evidence, conclusion } = await found(question);
    const record = sweepRecordSchema.parse(JSON.parse(JSON.stringify({ question, evidence, conclusion })));
    expect(record).toEqual({ question, evidence, conclusion });
    expect(concludeSweep(record.evidence)).toEqual(conclusion);
  });

  test.each([
    [
      'a layer that is not there',
      sweepOf([-1], { sites: [{ layer: 4, place: 'resid_post', position: -1 }] }),
      /no layer 4/,
    ],
    ['a site twice', sweepOf([-1, -1]), /named twice/],
    ['a direction twice', sweepOf([-1], { directions: [FIT, FIT] }), /direction fit is named twice/],
    ['a position outside of a prompt', sweepOf([-40]), /Position -40 is outside/],
    ['few rows', sweepOf([-1], { dataset: plainPairs(4) }), /at least 12/],
  ])('refuses %s', async (_, question, message) => {
    await expect(runSweep(createPlainEngine(), question, context())).rejects.toThrow(message);
  });
});
