/**
 * Sweeps over doses of the direction, and measures how the logits of the whole vocabulary change. A direction that the model does not read only
 * rescales all logits, or changes nothing.
 */

import type { Variant } from '../core/engine.ts';
import { likeliest, logitOf } from '../core/logits.ts';
import { shareOf } from '../statistics/proportion.ts';
import { createRandom } from '../statistics/random.ts';
import { mean } from '../statistics/summary.ts';
import { scaled } from '../statistics/vectors.ts';
import type { Dose, SweepRow } from './common-evidence.ts';
import type { Evidence } from './evidence.ts';
import type { CausalQuestion } from './question.ts';
import { logitsOf, type ProtocolRun, portionOf, portions, runChecked, type Site } from './readings.ts';
import type { Token } from './single-tokens.ts';
import { addAt } from './variants.ts';

/** In units of the mean norm of the activation. */
const STANDARD = [-2, -1, -0.5, 0.5, 1, 2];
const RANDOM_DIRECTIONS = 5;

export interface SweepSetup {
  site: Site;
  seed: number;
  prompts: readonly number[][];
  direction: Float32Array;
  swing: number;
  norm: number;
  /** The tokens that a dose along the direction asks for, and one against it. */
  asks: Record<'forth' | 'back', readonly Token[]>;
  controls: Evidence['controls'];
}

export async function measureSweep(
  run: ProtocolRun,
  setup: SweepSetup,
  asked: CausalQuestion['sweep'],
): Promise<Evidence['sweep']> {
  const random = createRandom(setup.seed, 'random directions for the sweep');
  const directions = Array.from({ length: RANDOM_DIRECTIONS }, () => random.direction(setup.direction.length));
  const standard = STANDARD.map((lengths) => lengths * setup.norm);
  const factor = { absolute: 1, swing: setup.swing, norm: setup.norm }[asked?.unit ?? 'absolute'];
  const others = (asked?.values ?? []).map((value) => value * factor);
  const cells = [
    ...[...standard, ...others].map((absolute) => ({ absolute, directions: [setup.direction] })),
    ...standard.map((absolute) => ({ absolute, directions })),
  ].map((cell) => createCell(setup, cell.absolute, cell.directions));

  const variantsOf = (prompt: number): { cell?: Cell; variant: Variant }[] => [
    { variant: { prompt, interventions: [] } },
    ...cells.flatMap((cell) => cell.vectors.map((vector) => ({ cell, variant: addAt(setup.site, prompt, vector) }))),
  ];
  const each = variantsOf(0).length;
  const { vocabulary } = run.engine.describe();
  for (const [from, to] of portions(setup.prompts.length, portionOf(each * vocabulary))) {
    const planned = Array.from({ length: to - from }, (_, i) => variantsOf(from + i)).flat();
    const results = await runChecked(run, {
      prompts: setup.prompts,
      variants: planned.map(({ variant }) => variant),
      logits: { positions: [-1] },
    });
    let base: Float32Array = new Float32Array();
    planned.forEach(({ cell }, i) => {
      const logits = logitsOf(results, i, vocabulary);
      if (cell) cell.count(base, logits);
      else base = logits;
    });
  }
  const rows = cells.slice(0, STANDARD.length);
  const sum = (pick: (cell: Cell) => number) => rows.reduce((total, cell) => total + pick(cell), 0);
  return {
    rows: rows.map((cell) => cell.row()),
    random: cells.slice(STANDARD.length + others.length).map((cell) => cell.row()),
    randomDirections: RANDOM_DIRECTIONS,
    asked: cells.slice(STANDARD.length, STANDARD.length + others.length).map((cell) => cell.row()),
    change: Math.max(...rows.map((cell) => cell.row().change)),
    commonScale: sum((cell) => cell.explained()) / (sum((cell) => cell.changed()) || 1),
  };
}

export function doseIn({ swing, norm }: { swing: number; norm: number }): (absolute: number) => Dose {
  const share = (absolute: number, unit: number) => (unit === 0 ? 0 : absolute / unit);
  return (absolute) => ({ absolute, swing: share(absolute, Math.abs(swing)), norm: share(absolute, norm) });
}

interface Cell {
  vectors: Float32Array[];
  count(base: Float32Array, logits: Float32Array): void;
  row(): SweepRow;
  changed(): number;
  explained(): number;
}

/** Accumulates the measurements of one dose over prompts. */
function createCell(setup: SweepSetup, absolute: number, directions: readonly Float32Array[]): Cell {
  const ids = setup.asks[absolute > 0 ? 'forth' : 'back'].map((token) => token.id);
  const controls = setup.controls.tokens.map((token) => token.id);
  let [runs, flips, toward, size, changed, explained, relative] = [0, 0, 0, 0, 0, 0, 0];
  return {
    vectors: directions.map((direction) => scaled(direction, absolute)),
    count(base, logits) {
      const [before, after] = [likeliest(base), likeliest(logits)];
      runs++;
      flips += before === after ? 0 : 1;
      toward += before !== after && ids.includes(after) && !ids.includes(before) ? 1 : 0;
      const products = centredProducts(base, logits);
      size += products.size;
      changed += products.changed;
      explained += products.size === 0 ? 0 : products.common ** 2 / products.size;
      const delta = (id: number) => logitOf(logits, id) - logitOf(base, id);
      relative += mean(ids.map(delta)) - mean(controls.map(delta));
    },
    row: () => ({
      dose: doseIn(setup)(absolute),
      flips: shareOf(flips, runs),
      towardTarget: shareOf(toward, runs),
      change: Math.sqrt(changed / (size || 1)),
      commonScale: changed === 0 ? 0 : explained / changed,
      deltaRelative: relative / (runs || 1),
    }),
    changed: () => changed,
    explained: () => explained,
  };
}

/** ‖z‖², ‖Δ‖² and z·Δ of base logits z and their change Δ, both centred, as softmax ignores a shift of all logits. */
function centredProducts(base: Float32Array, logits: Float32Array) {
  const [baseMean, mean1] = [mean(base), mean(logits)];
  let [size, changed, common] = [0, 0, 0];
  for (let token = 0; token < base.length; token++) {
    const z = logitOf(base, token) - baseMean;
    const delta = logitOf(logits, token) - mean1 - z;
    size += z * z;
    changed += delta * delta;
    common += z * delta;
  }
  return { size, changed, common };
}
