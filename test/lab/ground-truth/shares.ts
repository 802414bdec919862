/**
 * Measures by interventions of its own, without the protocol, what share of a model's behaviour a direction carries: every prompt gets
 * the component, or the whole activation, of one with the other label. It checks that families are what they are said to be.
 */

import type { CausalQuestion } from '../../../src/lab/causality/question.ts';
import type { Engine, Intervention } from '../../../src/lab/core/engine.ts';
import { missing } from '../../../src/lab/core/missing.ts';
import { createRandom } from '../../../src/lab/statistics/random.ts';
import { addScaled, dot, norm } from '../../../src/lab/statistics/vectors.ts';

export interface Shares {
  interchange: number;
  ablation: number;
  through: number;
  /** Half of the distance between the labels' mean margins, in logits. */
  gap: number;
}

export async function measureShares(engine: Engine, question: CausalQuestion): Promise<Shares> {
  const { dataset, site, target } = question;
  if (!target) throw new RangeError('Shares are measured between target words.');
  const prompts = await engine.tokenize(dataset.map((row) => row.prompt));
  const words = (await engine.tokenize([...target.positive, ...target.negative], { special: false })).flat();
  const signOf = (word: number) =>
    word < target.positive.length ? 1 / target.positive.length : -1 / target.negative.length;
  const point = { layer: site.layer, place: site.place };
  const positions = [site.position];

  async function marginsWith(intervene: (row: number) => Intervention[]): Promise<number[]> {
    const variants = prompts.map((_, prompt) => ({ prompt, interventions: intervene(prompt) }));
    const results = await engine.run({ prompts, variants, logits: { positions: [-1], tokens: words } });
    return results.map(({ logits }) => [...(logits ?? [])].reduce((sum, logit, word) => sum + signOf(word) * logit, 0));
  }

  const taps = await engine.run({ prompts, taps: [{ point, positions }] });
  const activations = taps.map(({ activations: [tap] }, i) =>
    Float64Array.from(tap ?? missing('activation of row', i)),
  );
  const at = (row: number) => activations[row] ?? missing('activation of row', row);
  const signs = dataset.map(({ label }) => (label === 1 ? 1 : -1));
  const means = [1, -1].map((sign) => meanOf(activations.filter((_, i) => signs[i] === sign)));
  const [positive = missing('class', 1), negative = missing('class', 0)] = means;
  const given = question.direction.kind === 'given' ? Float64Array.from(question.direction.vector) : undefined;
  const raw = given ?? positive.map((value, i) => value - (negative[i] ?? missing('mean of axis', i)));
  const direction = raw.map((value) => value / norm(raw));
  const middle = (dot(positive, direction) + dot(negative, direction)) / 2;
  const partners = partnersOf(question);
  const partnerOf = (row: number) => partners[row] ?? missing('partner of row', row);

  const shove = (row: number, to: number): Intervention[] => {
    const by = to - dot(at(row), direction);
    return [{ kind: 'add', point, positions, vector: Float32Array.from(direction, (value) => value * by) }];
  };
  const base = await marginsWith(() => []);
  const exchanged = await marginsWith((row) => shove(row, dot(at(partnerOf(row)), direction)));
  const ablated = await marginsWith((row) => shove(row, middle));
  const replaced = await marginsWith((row) => [
    { kind: 'set', point, positions, vector: Float32Array.from(at(partnerOf(row))) },
  ]);

  const byLabel = (values: readonly number[]) => {
    const of = (sign: number) => average(values.filter((_, i) => signs[i] === sign));
    return (of(1) - of(-1)) / 2;
  };
  const natural = byLabel(base) - byLabel(base.map((_, row) => base[partnerOf(row)] ?? missing('margin', row)));
  const gap = byLabel(base);
  return {
    interchange: (gap - byLabel(exchanged)) / natural,
    ablation: 1 - byLabel(ablated) / gap,
    through: (gap - byLabel(replaced)) / natural,
    gap,
  };
}

/** The other row of the pair, or else any of the other label. */
function partnersOf({ dataset, seed }: CausalQuestion): number[] {
  const random = createRandom(seed, 'partners of shares');
  return dataset.map(({ label, pair }) => {
    const others = [...dataset.keys()].filter((i) => dataset[i]?.label !== label);
    const own = pair === undefined ? [] : others.filter((i) => dataset[i]?.pair === pair);
    return random.choose(own.length > 0 ? own : others);
  });
}

function meanOf(rows: readonly Float64Array[]): Float64Array {
  const mean = new Float64Array(rows[0]?.length ?? missing('row', 0));
  for (const row of rows) addScaled(mean, row, 0, 1 / rows.length);
  return mean;
}

function average(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
