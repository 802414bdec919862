/** Measures by brute force what a model does: margins by label, and what is left of them without a direction, or with that of another prompt. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Engine, Intervention } from '../../../src/lab/core/engine.ts';
import { missing } from '../../../src/lab/core/missing.ts';
import { createEmbeddedEngine } from '../../../src/lab/engines/embedded/embedded-engine.ts';
import { openModelFolder } from '../../../src/lab/models/open-model.ts';
import { dot, norm } from '../../../src/lab/statistics/vectors.ts';
import type { Example, Made, ModelFolder } from './family.ts';

export interface Measured {
  /** Mean margin of label 1 less that of label 0. */
  gap: number;
  /** How often a prompt of label 1 has the larger margin than one of label 0. */
  marginOrder: number;
  /** The same for what is along the direction, on prompts that it was not fitted to. */
  siteOrder: number;
  /** The share of the gap that goes when all prompts have the mean along the direction. */
  removed: number;
  /** The share of the gap by which a prompt moves with all of the activation of one of the other label. */
  movedBySite: number;
  /** The same with its component along the direction only. */
  moved: number;
  /** How much of the change of all logits by that is not a multiplication of all by one number. */
  notScaling: number;
  /** Standard deviation of logits over the words that are no targets. */
  spread: number;
  /** How often a target is the likeliest word. */
  targetsWin: number;
  /** When pushed along the direction by a half to two times the activation's length, either way: how much the logits change, as a share of them. */
  pushed: number;
  /** How much of that change is not a multiplication of all by one number. */
  pushedNotScaling: number;
  /** By how much more the margin of a prompt grows when pushed up than when pushed down, as a share of twice the gap. */
  pushedMargin: number;
}

/** Examples that are pushed, which are enough to see what a push does. */
const PUSHED = 24;

export async function measure({ files, question }: Made): Promise<Measured> {
  const opened = await openFiles(files);
  try {
    return await measureWith(opened.engine, question);
  } finally {
    await opened.close();
  }
}

async function measureWith(engine: Engine, { dataset, site, target, direction }: Made['question']): Promise<Measured> {
  const point = { layer: site.layer, place: 'resid_post' } as const;
  const positions = [site.position];
  const prompts = await engine.tokenize(dataset.map(({ prompt }) => prompt));
  const tokensOf = async (words: string[]) => (await engine.tokenize(words)).map((ids) => ids[0] ?? missing('token'));
  const targets = { positive: await tokensOf(target.positive), negative: await tokensOf(target.negative) };
  const logitsWith = async (change: (index: number) => Intervention[], count = dataset.length) => {
    const variants = dataset.slice(0, count).map((_, prompt) => ({ prompt, interventions: change(prompt) }));
    const results = await engine.run({ prompts, variants, logits: { positions: [-1] } });
    return results.map(({ logits }) => logits ?? missing('logits'));
  };
  const marginOf = (logits: Float32Array) => {
    const mean = (tokens: number[]) => average(tokens.map((token) => logits[token] ?? missing('logit', token)));
    return mean(targets.positive) - mean(targets.negative);
  };
  const marginsWith = async (change: (index: number) => Intervention[]) => (await logitsWith(change)).map(marginOf);

  const tapped = await engine.run({ prompts, taps: [{ point, positions }] });
  const rows = tapped.map(({ activations }) => activations[0] ?? missing('activation'));
  const along = direction === 'fit' ? meanDifference(rows, dataset) : Float32Array.from(direction);
  const plainLogits = await logitsWith(() => []);
  const plain = plainLogits.map(marginOf);
  const gap = gapOf(plain, dataset);
  const mean = meanOf(rows);
  const others = partners(dataset);
  const sourceOf = (index: number) => rows[others[index] ?? missing('partner', index)] ?? missing('row');
  const interchanged = (source: Float32Array): Intervention[] => [
    { point, positions, kind: 'interchange', direction: along, source, part: 'along' },
  ];
  const without = await marginsWith(() => interchanged(mean));
  const swappedLogits = await logitsWith((index) => interchanged(sourceOf(index)));
  const replaced = await marginsWith((index) => [{ point, positions, kind: 'set', vector: sourceOf(index) }]);
  const pushedBy = (lengths: number) =>
    logitsWith((index) => [{ point, positions, kind: 'add', vector: push(along, rows[index], lengths) }], PUSHED);
  const up = [await pushedBy(0.5), await pushedBy(2)].flat();
  const down = [await pushedBy(-0.5), await pushedBy(-2)].flat();
  const unpushed = Array.from({ length: 4 }, () => plainLogits.slice(0, PUSHED)).flat();
  const movedBy = (margins: number[]) =>
    average(margins.map((margin, i) => (dataset[i]?.label === 1 ? -1 : 1) * (margin - (plain[i] ?? Number.NaN)))) / gap;

  return {
    gap,
    marginOrder: orderOf(plain, dataset),
    siteOrder:
      direction === 'fit'
        ? crossFitted(rows, dataset)
        : orderOf(
            rows.map((row) => dot(row, along)),
            dataset,
          ),
    removed: 1 - gapOf(without, dataset) / gap,
    moved: movedBy(swappedLogits.map(marginOf)),
    movedBySite: movedBy(replaced),
    notScaling: notScaling(plainLogits, swappedLogits),
    spread: average(plainLogits.map((logits) => deviation(logits, [...targets.positive, ...targets.negative]))),
    targetsWin: average(
      plainLogits.map((logits) => {
        const likeliest = logits.indexOf(Math.max(...logits));
        return Number([...targets.positive, ...targets.negative].includes(likeliest));
      }),
    ),
    pushed: changeOf(unpushed, [...up, ...down]),
    pushedNotScaling: notScaling(unpushed, [...up, ...down]),
    pushedMargin: (average(up.map(marginOf)) - average(down.map(marginOf))) / (2 * gap),
  };
}

function push(direction: Float32Array, row: Float32Array | undefined, lengths: number): Float32Array {
  const factor = (lengths * norm(row ?? missing('row'))) / norm(direction);
  return direction.map((value) => value * factor);
}

function changeOf(before: readonly Float32Array[], after: readonly Float32Array[]): number {
  const differences = before.map((row, i) => row.map((value, j) => (after[i]?.[j] ?? missing('logit', j)) - value));
  return Math.sqrt(average(differences.map((row) => dot(row, row))) / average(before.map((row) => dot(row, row))));
}

async function openFiles(files: ModelFolder): Promise<{ engine: Engine; close(): Promise<void> }> {
  const folder = mkdtempSync(join(tmpdir(), 'cuvette-held-out-'));
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
  const model = await openModelFolder(folder);
  const engine = await createEmbeddedEngine({ model, id: 'held-out', threads: 1 });
  model.close();
  return {
    engine,
    async close() {
      await engine.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function meanDifference(rows: readonly Float32Array[], dataset: readonly Example[]): Float32Array {
  const one = meanOf(rows.filter((_, i) => dataset[i]?.label === 1));
  const zero = meanOf(rows.filter((_, i) => dataset[i]?.label === 0));
  return one.map((value, i) => value - (zero[i] ?? missing('number', i)));
}

/** Fitted to one half, read on the other, and the reverse. Prompts of a pair stay together. */
function crossFitted(rows: readonly Float32Array[], dataset: readonly Example[]): number {
  const half = (index: number) => Math.floor(index / 4) % 2;
  return average(
    [0, 1].map((side) => {
      const indices = [...rows.keys()].filter((index) => half(index) === side);
      const rest = [...rows.keys()].filter((index) => half(index) !== side);
      const at = <T>(values: readonly T[], chosen: number[]) => chosen.map((i) => values[i] ?? missing('value', i));
      const direction = meanDifference(at(rows, rest), at(dataset, rest));
      return orderOf(
        at(rows, indices).map((row) => dot(row, direction)),
        at(dataset, indices),
      );
    }),
  );
}

/** For each example one of the other label: that of its pair, or else the next. */
function partners(dataset: readonly Example[]): number[] {
  return dataset.map(({ label, pair }, i) => {
    const after = dataset.map((_, step) => (i + step) % dataset.length);
    const fits = (j: number) => dataset[j]?.label !== label && (pair === undefined || dataset[j]?.pair === pair);
    return after.find(fits) ?? missing('example of the other label for', i);
  });
}

function gapOf(values: readonly number[], dataset: readonly Example[]): number {
  const of = (label: number) => average(values.filter((_, i) => dataset[i]?.label === label));
  return of(1) - of(0);
}

function orderOf(values: readonly number[], dataset: readonly Example[]): number {
  const of = (label: number) => values.filter((_, i) => dataset[i]?.label === label);
  return average(of(1).flatMap((one) => of(0).map((zero) => (one > zero ? 1 : one === zero ? 0.5 : 0))));
}

function notScaling(before: readonly Float32Array[], after: readonly Float32Array[]): number {
  const shares = before.map((row, i) => {
    const changed = after[i] ?? missing('logits of prompt', i);
    const factor = dot(row, changed) / dot(row, row);
    const sumOfSquares = (part: (value: number, j: number) => number) =>
      Array.from(changed, part).reduce((sum, value) => sum + value * value, 0);
    const at = (j: number) => row[j] ?? missing('logit', j);
    return { left: sumOfSquares((value, j) => value - factor * at(j)), all: sumOfSquares((value, j) => value - at(j)) };
  });
  return average(shares.map(({ left }) => left)) / average(shares.map(({ all }) => all));
}

function meanOf(rows: readonly Float32Array[]): Float32Array {
  const first = rows[0] ?? missing('row', 0);
  return first.map((_, column) => average(rows.map((row) => row[column] ?? missing('number', column))));
}

function average(values: readonly number[]): number {
  if (values.length === 0) return missing('value to average');
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function deviation(logits: Float32Array, targets: readonly number[]): number {
  const others = Array.from(logits).filter((_, token) => !targets.includes(token));
  const mean = average(others);
  return Math.sqrt(average(others.map((value) => (value - mean) ** 2)));
}
