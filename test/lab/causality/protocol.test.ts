import { describe, expect, test } from 'vitest';
import { decide } from '../../../src/lab/causality/decide.ts';
import { evidenceSchema } from '../../../src/lab/causality/evidence.ts';
import { runProtocol } from '../../../src/lab/causality/protocol.ts';
import type { CausalQuestion } from '../../../src/lab/causality/question.ts';
import { createRandom } from '../../../src/lab/statistics/random.ts';
import { mean } from '../../../src/lab/statistics/summary.ts';
import { axis, createPlainEngine, plainPairs } from './plain-engine.ts';
import { answer, answerAnew, ask, context } from './questions.ts';

describe('the causality protocol', () => {
  test('finds the direction that the answer is read from, and measures all of it', async () => {
    const { evidence, verdict } = await answer();
    expect(verdict).toMatchObject({ verdict: 'causal', reason: 'sufficient-and-necessary' });
    expect(evidence.interchange.value).toBeGreaterThan(0.9);
    expect(evidence.interchange.complement).toBeLessThan(0.1);
    expect(evidence.interchange.full.value).toBeCloseTo(1, 5);
    expect(evidence.ablation.value).toBeGreaterThan(0.9);
    expect(evidence.steering.wrongWay.count).toBe(0);
    expect(evidence.split).toMatchObject({ by: 'none', discovery: [] });
    expect(evidence.split.test).toHaveLength(24);
  });

  test('does not call a direction causal that correlates with the answer and is not read', async () => {
    const { evidence, verdict } = await answer({ direction: { kind: 'given', vector: axis('correlate') } });
    expect(verdict).toMatchObject({ verdict: 'epiphenomenal-softmax', reason: 'uniform-rescale' });
    expect(evidence.decodability.auroc).toBe(1);
    expect(Math.abs(evidence.interchange.value)).toBeLessThan(0.05);
  });

  test('does not count a change of temperature as an effect', async () => {
    const { evidence } = await answer({ direction: { kind: 'given', vector: axis('correlate') } });
    // To the mean of the other class, where the norm feels it, cools or heats all logits.
    expect(evidence.temperature.low).toBeLessThan(0.98);
    expect(Math.abs(evidence.steering.value)).toBeLessThan(Math.abs(evidence.steering.uncorrected));
  });

  test.each(['difference-of-means', 'logistic'] as const)(
    'finds a direction by %s in one half and tests it in the other',
    async (method) => {
      const { evidence, verdict } = await answer({ direction: { kind: 'fit', method }, dataset: plainPairs(16) });
      expect(verdict.verdict).toBe('causal');
      expect(evidence.split.by).toBe('pair');
      expect(evidence.split.discovery.filter((row) => evidence.split.test.includes(row))).toEqual([]);
      const pairs = (rows: number[]) => new Set(rows.map((row) => row >> 1));
      const shared = [...pairs(evidence.split.discovery)].filter((pair) => pairs(evidence.split.test).has(pair));
      expect(shared).toEqual([]);
      expect(evidence.decodability.permutation.refitted).toBe(true);
    },
  );

  test('chooses the target from the discovery half when none is given', async () => {
    const { target: _, ...rest } = ask({ dataset: plainPairs(16) });
    const evidence = await runProtocol(createPlainEngine(), rest, context());
    expect(evidence.target).toMatchObject({
      chosen: 'discovery',
      positive: [{ text: 'yes' }],
      negative: [{ text: 'no' }],
    });
    expect(evidence.split.by).toBe('pair');
    expect(evidence.split.test).toHaveLength(16);
  });

  test('never tests on rows that a probe was trained on, nor on their partners', async () => {
    const direction = { kind: 'given' as const, vector: axis('concept'), trainedOn: [0, 2, 4, 6] };
    const { evidence } = await answer({ direction, dataset: plainPairs(16) });
    expect(evidence.split.by).toBe('given');
    expect(evidence.split.discovery).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    expect(evidence.split.test).toHaveLength(24);
  });

  test("expresses effects as shares of the natural gap, and each prompt's part in logits", async () => {
    const { evidence } = await answer();
    const { behaviour, steering, interchange } = evidence;
    expect(steering.whole).toBe(behaviour.gap);
    // Both rows of a pair are as far from each other as each is from the middle, twice.
    expect(interchange.whole).toBeCloseTo(2 * behaviour.gap, 10);
    for (const { value, whole, each } of [steering, interchange]) {
      const told = each.filter((part) => part !== null);
      expect(told).toHaveLength(24);
      expect(value).toBeCloseTo(mean(told) / whole, 10);
    }
  });

  test('takes shares of at least the smallest gap', async () => {
    const withGain = (gain: number) => runProtocol(createPlainEngine({ gain }), ask(), context());
    const [without, one] = [(await withGain(0)).behaviour.gap, (await withGain(1)).behaviour.gap];
    // The gap grows with the gain; words that go with the label by chance have one of their own.
    const withGap = (gap: number) => withGain((gap - without) / (one - without));
    const [up, down] = [await withGap(1e-4), await withGap(-1e-4)];
    expect([Math.sign(up.behaviour.gap), Math.sign(down.behaviour.gap)]).toEqual([1, -1]);
    for (const evidence of [up, down]) {
      const { behaviour, steering, interchange, ablation } = evidence;
      expect(decide(evidence).verdict).toBe('undetermined');
      expect([steering, interchange, ablation].map(({ whole }) => whole)).toEqual([0.1, 0.2, 0.1]);
      for (const { value, interval } of [steering, interchange, ablation])
        for (const number of [value, interval.low, interval.high]) expect(Math.abs(number)).toBeLessThan(10);
      expect(ablation.gap).toBeCloseTo(behaviour.gap - mean(ablation.each.map((part) => part ?? Number.NaN)), 10);
    }
    // Which side of nothing the gap is on changes no share, and turns no dose.
    expect(up.steering.value).toBeCloseTo(down.steering.value, 2);
    expect(up.steering.interval.low).toBeCloseTo(down.steering.interval.low, 2);
    expect(up.steering.wrongWay.count).toBe(down.steering.wrongWay.count);
    expect(up.sweep.rows.map((row) => row.towardTarget.count)).toEqual(
      down.sweep.rows.map((row) => row.towardTarget.count),
    );
  });

  test('takes effects that differ by rounding only for equal', async () => {
    const random = createRandom(1, 'last bits');
    // The same whatever is asked and added, but for their last bits.
    const spoil = (logits: Float32Array) => logits.set(logits.map((_, i) => i / 10 + 2e-6 * random.normal()));
    const { steering, interchange, ablation } = await runProtocol(createPlainEngine({ spoil }), ask(), context());
    for (const { value, p, each } of [steering, interchange, ablation]) {
      expect(new Set(each).size).toBeGreaterThan(10);
      expect(Math.abs(value)).toBeLessThan(1e-3);
      expect(p).toBe(1);
    }
  });

  test('gives doses in all three units, and sweeps what it is asked for besides its own', async () => {
    const { evidence } = await answer({ sweep: { values: [-1, 1], unit: 'swing' } });
    const { swing, norm } = evidence.direction;
    expect(evidence.sweep.asked.map((row) => row.dose.swing)).toEqual([-1, 1]);
    expect(evidence.sweep.asked[1]?.dose.absolute).toBeCloseTo(swing, 10);
    expect(evidence.sweep.asked[1]?.dose.norm).toBeCloseTo(swing / norm, 10);
    expect(evidence.sweep.rows.map((row) => row.dose.norm)).toEqual([-2, -1, -0.5, 0.5, 1, 2]);
    expect(evidence.sweep.rows.every((row) => row.flips.of === 24)).toBe(true);
    expect(evidence.sweep.random.every((row) => row.flips.of === 5 * 24)).toBe(true);
  });

  test('matches partners across labels where there are no pairs', async () => {
    const dataset = plainPairs(16).map(({ pair: _, ...row }, i) => ({ ...row, template: `t${i % 4 < 2 ? 'a' : 'b'}` }));
    const { evidence, verdict } = await answer({ dataset });
    expect(evidence.interchange.partners).toEqual({ pair: 0, template: 32, any: 0 });
    expect(evidence.data).toMatchObject({ pairs: 0, templates: 2 });
    expect(verdict.limits.join(' ')).toContain('not in counterfactual pairs');
  });

  test('holds a later question to a smaller level, which a clear verdict survives', async () => {
    const [first, late] = [
      await runProtocol(createPlainEngine(), ask(), context()),
      await runProtocol(createPlainEngine(), ask(), context({ family: 40 })),
    ];
    expect(first.multiplicity).toMatchObject({ question: 1, level: 0.0125, nulls: 99, stable: true });
    expect(late.multiplicity.level).toBeCloseTo(0.05 / 32 / 32, 12);
    expect(late.steering.null.slice(0, 99)).toEqual(first.steering.null);
    expect(late.steering.adjusted).toBeGreaterThan(first.steering.adjusted);
    expect(decide(late)).toMatchObject({ verdict: 'causal' });
  });

  test('takes exactly as many random directions as it is told to, or more than that to begin with', async () => {
    const nulls = async (changes: Partial<CausalQuestion>) => (await answer(changes)).evidence.multiplicity.nulls;
    expect(await nulls({ nulls: 19 })).toBe(19);
    expect(await nulls({ fewestNulls: 5 })).toBe(99);
    expect(await nulls({ fewestNulls: 150 })).toBe(150);
  });

  test('says how many random directions would settle it where they are too few', async () => {
    const { verdict } = await answer({ nulls: 19 });
    expect(verdict).toMatchObject({ verdict: 'undetermined', reason: 'underpowered' });
    expect(verdict.wanted?.randomDirections).toBeGreaterThan(99);
    expect(verdict.sentence).toContain(`${verdict.wanted?.randomDirections} random directions would settle it`);
  });

  test('shows the first prompts of each class, with what the model says before and after', async () => {
    const { evidence } = await answer();
    expect(evidence.examples).toHaveLength(6);
    const labels = evidence.examples.map(({ row }) => plainPairs(12)[row]?.label);
    expect(labels).toEqual([1, 1, 1, 0, 0, 0]);
    for (const [i, { before, component, whole }] of evidence.examples.entries()) {
      const [own, other] = i < 3 ? ['yes', 'no'] : ['no', 'yes'];
      expect([before.text, component.text, whole.text]).toEqual([own, other, other]);
      expect(before.probability).toBeGreaterThan(0.3);
    }
  });

  test('gives the same answer when target words are named the other way round', async () => {
    const { evidence, verdict } = await answer({
      direction: { kind: 'given', vector: axis('concept') },
      target: { positive: ['no'], negative: ['yes'] },
    });
    expect(evidence.behaviour.gap).toBeLessThan(0);
    expect(evidence.interchange.value).toBeGreaterThan(0.9);
    expect(verdict.verdict).toBe('causal');
  });

  test('scores a structure-matched set with the same direction', async () => {
    const { evidence } = await answer({ structureMatched: plainPairs(8, 2) });
    expect(evidence.structureMatched?.auroc).toBe(1);
    expect(evidence.structureMatched?.scores).toHaveLength(16);
  });

  test('gives the same evidence for the same seed, to the last digit, and it survives being stored', async () => {
    const question = { direction: { kind: 'fit', method: 'difference-of-means' } as const };
    const [first, second] = [await answer(question), await answerAnew(question)];
    expect(JSON.stringify(second.evidence)).toBe(JSON.stringify(first.evidence));
    const stored: unknown = JSON.parse(JSON.stringify(first.evidence));
    expect(evidenceSchema.parse(stored)).toEqual(first.evidence);
    const other = await answer({ ...question, seed: 2 });
    expect(other.evidence.steering.null).not.toEqual(first.evidence.steering.null);
  });

  test('makes many interventions in one request', async () => {
    let [requests, variants] = [0, 0];
    const engine = createPlainEngine({
      onRun: (request) => {
        requests++;
        variants += request.variants?.length ?? 0;
      },
    });
    await runProtocol(engine, ask(), context());
    expect(variants).toBeGreaterThan(4 * 24 * 99);
    expect(requests).toBeLessThan(60);
  });

  test('reports progress, and never more than the total', async () => {
    const seen: [number, number][] = [];
    await runProtocol(createPlainEngine(), ask(), context({ onProgress: (done, about) => seen.push([done, about]) }));
    expect(seen.length).toBeGreaterThan(5);
    expect(seen.every(([done, about], i) => done <= about && done >= (seen[i - 1]?.[0] ?? 0))).toBe(true);
    const [done, about] = seen.at(-1) ?? [0, 1];
    expect(done / about).toBeGreaterThan(0.8);
  });
});

describe('the causality protocol on a failure', () => {
  test('passes on an error of the engine, and returns no evidence', async () => {
    const engine = createPlainEngine({
      onRun: (_, number) => {
        if (number === 6) throw new Error('The thread has died.');
      },
    });
    await expect(runProtocol(engine, ask(), context())).rejects.toThrow('The thread has died.');
  });

  test('takes a number that is not finite for an error, not for no effect', async () => {
    const engine = createPlainEngine({
      spoil: (logits, request) => {
        if (request.variants?.some((variant) => variant.interventions.length > 0)) logits[1] = Number.NaN;
      },
    });
    await expect(runProtocol(engine, ask(), context())).rejects.toMatchObject({
      code: 'bad_model',
      message: expect.stringMatching(/not finite, under an intervention/),
    });
  });

  test('stops when its signal is aborted', async () => {
    const controller = new AbortController();
    let after = 0;
    const engine = createPlainEngine({
      onRun: (_, number) => {
        if (number === 4) controller.abort(new Error('Enough.'));
        after = number;
      },
    });
    await expect(runProtocol(engine, ask(), context({ signal: controller.signal }))).rejects.toThrow('Enough.');
    expect(after).toBe(4);
  });
});
