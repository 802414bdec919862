/** Answers `patch_map`: takes the discovery half of a capture's pairs, measures or estimates patches at every site, and draws the map. */

import type * as z from 'zod';
import { CuvetteError } from '../../errors.ts';
import { labelsOf, rowAt } from '../causality/dataset.ts';
import type { CausalQuestion, DatasetRow } from '../causality/question.ts';
import { meanLogits } from '../causality/readings.ts';
import { splitRows } from '../causality/split.ts';
import { chooseTarget } from '../causality/target.ts';
import type { HookPoint } from '../core/engine.ts';
import { formatHookPoint } from '../core/hook-points.ts';
import type { LabContext } from '../core/lab.ts';
import { missing, pick } from '../core/missing.ts';
import { parsePosition, resolvePositions } from '../core/positions.ts';
import { measurePatches, type PatchEffects, type PatchPlan } from '../patching/patch-effects.ts';
import { patchMap } from '../primitives/patch-map.ts';
import { drawMap } from '../report/map-picture.ts';
import { createRandom } from '../statistics/random.ts';
import { defineHandler } from './handler.ts';
import { layerOf } from './layers.ts';
import { tokenizePrompts } from './prompts.ts';
import { type LabResources, recorded } from './resources.ts';
import { twoClassRows } from './rows.ts';
import { targetWords } from './target-words.ts';

/** Positions from the end, where none are given. */
const USUAL_POSITIONS = 12;
/** Rows of the map that an answer has. */
const MOST_ROWS = 48;
/** Digits of shares, which are read by an agent. */
const DIGITS = 4;

type Arguments = z.output<typeof patchMap.input>;

export const patchMapHandler = defineHandler(patchMap, async (resources, args, context) => {
  const { engine, model } = resources;
  const capture = await resources.store.captures.get(args.capture_id);
  const dataset = twoClassRows(capture, undefined, patchMap.name);
  const discovery = discoveryOf(dataset, args.seed);
  const pairs = pairsOf(dataset, discovery).slice(0, args.max_pairs);
  if (pairs.length === 0)
    throw new CuvetteError(
      'invalid_input',
      `The capture ${capture.id} has no counterfactual pairs among the half of its data that maps are made of. Capture prompts with pair_ids, of both labels each.`,
    );
  const all = await tokenizePrompts(resources, capture.prompts);
  const prompts = pick(all, pairs.flat(), 'prompt');
  const run = { engine, signal: context.signal, advance: advancing(context) };
  const known = pick(all, discovery, 'prompt');
  const question: CausalQuestion = { ...questionOf(dataset, args.seed), ...targetWords(args, { dataset }) };
  const target = await chooseTarget(engine, question, await meanLogits(run, known, labelsOf(dataset, discovery), 2));
  const plan: PatchPlan = {
    prompts,
    pairs: pairs.map((_, i) => [2 * i, 2 * i + 1] as const),
    place: args.place,
    layers: layersOf(resources, args),
    positions: positionsOf(args, prompts),
    target: { positive: target.positive.map(({ id }) => id), negative: target.negative.map(({ id }) => id) },
    method: args.method,
  };
  const effects = await measurePatches(run, plan);
  const shown = await shownMap(resources, plan, effects, args.top_k);
  const { capture_id, top_k, ...inputs } = args;
  const manifest = await recorded(resources, {
    tool: patchMap.name,
    inputs: { ...inputs, layers: plan.layers, positions: plan.positions, target: plan.target },
    outputs: { shares: Array.from(effects.shares), gap: effects.gap },
    data: capture.data,
    seed: args.seed,
  });
  return {
    ...shown,
    gap: effects.gap,
    target: { positive: target.positive.map(({ text }) => text), negative: target.negative.map(({ text }) => text) },
    n_pairs: pairs.length,
    notes: notesOn(args, plan, effects, model.layers),
    manifest_sha256: manifest,
  };
});

/** The half that the protocol finds directions in, and does not test on, with the same seed. */
function discoveryOf(dataset: DatasetRow[], seed: number): number[] {
  return splitRows(questionOf(dataset, seed), createRandom(seed, 'split')).discovery;
}

function questionOf(dataset: DatasetRow[], seed: number): CausalQuestion {
  return {
    site: { layer: 0, place: 'resid_post', position: -1 },
    direction: { kind: 'fit', method: 'difference-of-means' },
    dataset,
    seed,
  };
}

/** Of each pair the row with label 1, then the one with label 0. */
function pairsOf(dataset: readonly DatasetRow[], rows: readonly number[]): [number, number][] {
  const found = new Map<string, Map<number, number>>();
  for (const row of rows) {
    const { pair, label } = rowAt(dataset, row);
    if (pair !== undefined) found.set(pair, new Map([[label, row], ...(found.get(pair) ?? [])]));
  }
  return [...found.values()].flatMap((labels): [number, number][] => {
    const [positive, negative] = [labels.get(1), labels.get(0)];
    return positive === undefined || negative === undefined ? [] : [[positive, negative]];
  });
}

function layersOf(resources: LabResources, { layers }: Arguments): number[] {
  if (!layers) return Array.from({ length: resources.model.layers }, (_, layer) => layer);
  return [...new Set(layers.map((layer) => layerOf(resources, layer).point.layer))].sort((a, b) => a - b);
}

function positionsOf({ positions }: Arguments, prompts: readonly number[][]): number[] {
  const shortest = Math.min(...prompts.map(({ length }) => length));
  const count = Math.min(shortest, USUAL_POSITIONS);
  const asked = positions?.map(parsePosition) ?? Array.from({ length: count }, (_, i) => i - count);
  for (const tokens of prompts) resolvePositions(asked, tokens.length);
  return [...new Set(asked)];
}

async function shownMap({ engine }: LabResources, plan: PatchPlan, effects: PatchEffects, count: number) {
  const { points } = effects;
  const { positions } = plan;
  const shareAt = (point: number, position: number) =>
    effects.shares[point * positions.length + position] ?? missing('share of point', point);
  const valuesOf = (point: number) => positions.map((_, position) => shareAt(point, position));
  const strength = (point: number) => Math.max(...valuesOf(point).map(Math.abs));
  const rows = points.map((_, point) => point);
  const kept = rows
    .toSorted((a, b) => strength(b) - strength(a))
    .slice(0, MOST_ROWS)
    .sort((a, b) => a - b);
  const sites = rows.flatMap((point) =>
    positions.map((position, i) => ({ layer: shownPoint(points[point]), position, share: shareAt(point, i) })),
  );
  const best = sites.sort((a, b) => Math.abs(b.share) - Math.abs(a.share)).slice(0, count);
  const [first = missing('prompt', 0)] = plan.prompts;
  const tokens = resolvePositions(positions, first.length).map((index) => first[index] ?? missing('token', index));
  return {
    best: best.map((site) => ({ ...site, share: rounded(site.share) })),
    picture: pictureOf(plan, points, valuesOf),
    map: {
      rows: kept.map((point) => shownPoint(points[point])),
      positions: [...positions],
      tokens: await Promise.all(tokens.map((token) => engine.detokenize([token], { special: true }))),
      shares: kept.map((point) => valuesOf(point).map(rounded)),
    },
  };
}

/** Layers × positions, or layers × heads, each with its strongest position. */
function pictureOf(plan: PatchPlan, points: readonly HookPoint[], valuesOf: (point: number) => number[]): string {
  const ofLayer = (layer: number) => points.flatMap((point, i) => (point.layer === layer ? [i] : []));
  const strongest = (values: number[]) => values.reduce((a, b) => (Math.abs(b) > Math.abs(a) ? b : a));
  const heads = ofLayer(plan.layers[0] ?? missing('layer')).map((point) => points[point]?.head);
  const hasHeads = heads[0] !== undefined;
  return drawMap({
    title: `${plan.method} at ${plan.place}: layers down, ${hasHeads ? 'heads across, each at its strongest position' : 'positions across'}`,
    columns: hasHeads ? heads.map(String) : plan.positions.map(String),
    rows: plan.layers.map((layer) => ({
      name: String(layer),
      values: hasHeads
        ? ofLayer(layer).map((point) => strongest(valuesOf(point)))
        : valuesOf(ofLayer(layer)[0] ?? missing('point of layer', layer)),
    })),
  });
}

function notesOn({ method, place }: Arguments, plan: PatchPlan, { points }: PatchEffects, layers: number): string[] {
  const notes: string[] = [];
  if (method === 'attribution')
    notes.push('Shares are first-order estimates: measure the best sites with method interchange, or test them.');
  if (place === 'pattern') notes.push('A pattern has no directions: test the head by its output, place z.');
  if (points.length > MOST_ROWS) notes.push(`The map has the ${MOST_ROWS} strongest of ${points.length} rows.`);
  if (plan.layers.length < layers) notes.push(`${plan.layers.length} of ${layers} layers were asked for.`);
  return notes;
}

function shownPoint(point: HookPoint = missing('point')): number | string {
  return point.place === 'resid_post' ? point.layer : formatHookPoint(point);
}

function rounded(value: number): number {
  return Number(value.toPrecision(DIGITS));
}

function advancing({ progress }: LabContext): (count: number) => void {
  let [done, told] = [0, 0];
  return (count) => {
    done += count;
    if (done < 2 * told || done < 1000) return;
    told = done;
    progress(`${done} runs of the model are done`);
  };
}
