/** Measures by brute force what a site and a direction do in a model: whole rows and components are exchanged, taken out and pushed, and the margins between the target words compared. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import type { Engine, Intervention } from '../../../../src/lab/core/engine.ts';
import { missing } from '../../../../src/lab/core/missing.ts';
import { createEmbeddedEngine } from '../../../../src/lab/engines/embedded/embedded-engine.ts';
import { openModelFolder } from '../../../../src/lab/models/open-model.ts';
import { createRandom } from '../../../../src/lab/statistics/random.ts';
import { mean, standardDeviation } from '../../../../src/lab/statistics/summary.ts';
import { dot, norm, scaled } from '../../../../src/lab/statistics/vectors.ts';
import type { Example, Made } from '../family.ts';

/** Shares are of the gap between the classes' margins. */
export interface Measures {
  /** Of the margins, between the classes' means. */
  gap: number;
  /** The gap in standard deviations of the margins within a class. */
  clarity: number;
  /** The chance that an example of class 1 lies above one of class 0 along the direction, which is fitted on other examples where it is not given. */
  readable: number;
  /** What exchanging the component with one of the other class changes, in examples of class 0 and of class 1. */
  putIn: number;
  turned: number;
  /** What is left of the gap where the component is set to its mean. */
  left: number;
  /** What exchanging the whole row changes. */
  row: number;
  /** What adding and subtracting ten times the classes' difference changes, as the difference of the two. */
  drive: number;
  /** The largest change of any margin by pushing ten and a hundred times the classes' difference either way. */
  pushed: number;
  /** How well the logits of all words after such a push go with those before, and how much smaller they are. */
  alike: number;
  shrunk: number;
  /** The largest change by an exchange along one of several random directions. */
  random: number;
  /** Words that are not one token of the vocabulary. */
  unknown: string[];
}

const Tokenizer = z.object({ model: z.object({ vocab: z.record(z.string(), z.number()) }) });

const MOST = 60;
const RANDOM_DIRECTIONS = 12;

export async function measure(made: Made): Promise<Measures> {
  return withEngine(made, async (engine) => {
    const { dataset, site, target, direction: given } = made.question;
    const words = [
      ...new Set([...dataset.flatMap(({ prompt }) => prompt.split(' ')), ...target.positive, ...target.negative]),
    ];
    const { vocab } = Tokenizer.parse(JSON.parse(String(made.files['tokenizer.json']))).model;
    const unknown = words.filter((word) => !Object.hasOwn(vocab, word));
    const positive = (await engine.tokenize(target.positive)).flat();
    const negative = (await engine.tokenize(target.negative)).flat();
    const marginOf = (logits: Float32Array) =>
      mean(positive.map((id) => logits[id] ?? missing('logit', id))) -
      mean(negative.map((id) => logits[id] ?? missing('logit', id)));

    const every = await runAll(dataset);
    const fitted = every.map(({ row }) => row);
    const direction = Float32Array.from(given === 'fit' ? difference(fitted, dataset) : given);
    const readable =
      given === 'fit'
        ? crossValidated(fitted, dataset)
        : areaUnder(
            fitted.map((row) => dot(row, direction)),
            dataset,
          );

    const examples = some(dataset);
    const base = examples.map((example) => every[dataset.indexOf(example)] ?? missing('run'));
    const margins = base.map(({ logits }) => marginOf(logits));
    const labels = examples.map(({ label }) => label);
    const gapOf = (values: readonly number[]) =>
      mean(values.filter((_, i) => labels[i] === 1)) - mean(values.filter((_, i) => labels[i] === 0));
    const within = ([1, 0] as const).map((label) => standardDeviation(margins.filter((_, i) => labels[i] === label)));
    const gap = gapOf(margins);
    const unit = scaled(direction, 1 / norm(direction));
    const along = base.map(({ row }) => dot(row, unit));
    const apart = gapOf(along);
    const partners = examples.map((example, i) => partnerOf(example, i, examples));
    const sourceOf = (i: number) => base[partners[i] ?? missing('partner', i)]?.row ?? missing('row', i);

    const changed = async (change: (i: number) => Change) => {
      const after = await runAll(examples, change);
      return after.map(({ logits }) => logits);
    };
    const shareOf = (logits: readonly Float32Array[], label?: 0 | 1) => {
      const moves = logits.map(
        (one, i) => (labels[i] === 1 ? -1 : 1) * (marginOf(one) - (margins[i] ?? missing('margin', i))),
      );
      return mean(moves.filter((_, i) => label === undefined || labels[i] === label)) / gap;
    };
    const swapAlong = (of: Float32Array) =>
      changed((i) => ({ kind: 'interchange', direction: of, source: sourceOf(i), part: 'along' }));

    const swapped = await swapAlong(unit);
    const centre = meanRow(base.map(({ row }) => row));
    const levelled = await changed(() => ({ kind: 'interchange', direction: unit, source: centre, part: 'along' }));
    const rows = await changed((i) => ({ kind: 'set', vector: sourceOf(i) }));
    const size = Math.max(Math.abs(apart), 1e-3);
    const pushes = new Map<number, Float32Array[]>();
    for (const factor of [10, -10, 100, -100])
      pushes.set(factor, await changed(() => ({ kind: 'add', vector: scaled(unit, factor * size) })));
    const pushOf = (factor: number) => pushes.get(factor) ?? missing('push', factor);
    const biggest = Math.max(
      ...[...pushes.values()].flatMap((logits) => logits.map((one, i) => Math.abs(marginOf(one) - (margins[i] ?? 0)))),
    );
    const likeness = [...pushOf(10), ...pushOf(-10)].map((one, i) => likenessOf(base[i % base.length]?.logits, one));
    const random = createRandom(1, 'third set, random directions');
    const others: number[] = [];
    for (let i = 0; i < RANDOM_DIRECTIONS; i++)
      others.push(Math.abs(shareOf(await swapAlong(random.direction(unit.length)))));

    return {
      gap,
      clarity: gap / Math.max(1e-9, mean(within)),
      readable,
      putIn: shareOf(swapped, 0),
      turned: shareOf(swapped, 1),
      left: gapOf(levelled.map(marginOf)) / gap,
      row: shareOf(rows),
      drive: (mean(pushOf(10).map(marginOf)) - mean(pushOf(-10).map(marginOf))) / gap,
      pushed: biggest / Math.abs(gap),
      alike: mean(likeness.map(({ correlation }) => correlation)),
      shrunk: mean(likeness.map(({ scale }) => scale)),
      random: Math.max(...others),
      unknown,
    };

    async function runAll(prompts: readonly Example[], change?: (i: number) => Change) {
      const point = { layer: site.layer, place: 'resid_post' } as const;
      const positions = [site.position];
      const variants = prompts.map((_, prompt) => ({
        prompt,
        interventions: change ? [{ point, positions, ...change(prompt) }] : [],
      }));
      const results = await engine.run({
        prompts: await engine.tokenize(prompts.map(({ prompt }) => prompt)),
        variants,
        taps: [{ point, positions }],
        logits: { positions: [-1] },
      });
      return results.map(({ activations, logits }) => ({
        row: activations[0] ?? missing('activation'),
        logits: logits ?? missing('logits'),
      }));
    }
  });
}

type Change = DistributiveOmit<Intervention, 'point' | 'positions'>;
type DistributiveOmit<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never;

async function withEngine<T>({ files }: Made, use: (engine: Engine) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'third-set-'));
  try {
    for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
    const model = await openModelFolder(folder);
    const engine = await createEmbeddedEngine({ model, id: folder, threads: 1 });
    try {
      return await use(engine);
    } finally {
      await engine.close();
      model.close();
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Up to 60 examples, with pairs left whole and both classes among them. */
function some(dataset: readonly Example[]): Example[] {
  if (dataset.some(({ pair }) => pair !== undefined)) return dataset.slice(0, MOST);
  return ([1, 0] as const).flatMap((label) => dataset.filter((one) => one.label === label).slice(0, MOST / 2));
}

/** The other prompt of its pair, or else any of the other class. */
function partnerOf(example: Example, index: number, examples: readonly Example[]): number {
  const paired = examples.findIndex(
    (one) => example.pair !== undefined && one.pair === example.pair && one !== example,
  );
  if (paired >= 0) return paired;
  const others = examples.flatMap((one, i) => (one.label === example.label ? [] : [i]));
  return others[index % others.length] ?? missing('example of the other class');
}

function meanRow(rows: readonly Float32Array[]): Float32Array {
  const sum = new Float64Array(rows[0]?.length ?? missing('row'));
  for (const row of rows) for (const [i, value] of row.entries()) sum[i] = (sum[i] ?? 0) + value / rows.length;
  return Float32Array.from(sum);
}

function difference(rows: readonly Float32Array[], examples: readonly Example[]): Float32Array {
  const of = (label: 0 | 1) => meanRow(rows.filter((_, i) => examples[i]?.label === label));
  const zero = of(0);
  return of(1).map((value, i) => value - (zero[i] ?? missing('number', i)));
}

/** Fitted on four fifths, read on the rest; pairs stay together. */
function crossValidated(rows: readonly Float32Array[], examples: readonly Example[]): number {
  const names = [...new Set(examples.map(({ pair, prompt }) => pair ?? prompt))];
  const foldOf = (i: number) => names.indexOf(examples[i]?.pair ?? examples[i]?.prompt ?? missing('example', i)) % 5;
  const areas = [0, 1, 2, 3, 4].map((fold) => {
    const pick = <T>(values: readonly T[], inside: boolean) => values.filter((_, i) => (foldOf(i) === fold) === inside);
    const direction = difference(pick(rows, false), pick(examples, false));
    const held = pick(rows, true).map((row) => dot(row, direction));
    return areaUnder(held, pick(examples, true));
  });
  return mean(areas);
}

/** Ties count half; what differs by rounding alone is a tie. */
function areaUnder(values: readonly number[], examples: readonly Example[]): number {
  const of = (label: 0 | 1) => values.filter((_, i) => examples[i]?.label === label);
  const slack = 1e-5 * Math.max(...values.map(Math.abs), 1e-6);
  const wins = of(1).flatMap((high) => of(0).map((low) => (Math.abs(high - low) <= slack ? 0.5 : Number(high > low))));
  return mean(wins);
}

function likenessOf(before: Float32Array | undefined, after: Float32Array): { correlation: number; scale: number } {
  const a = centred(before ?? missing('logits'));
  const b = centred(after);
  return { correlation: dot(a, b) / (norm(a) * norm(b)), scale: norm(b) / norm(a) };
}

function centred(values: Float32Array): Float32Array {
  const middle = mean(values);
  return values.map((value) => value - middle);
}
