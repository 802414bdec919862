/**
 * Runs the causality protocol, which tests whether a model uses a direction or only carries it. Makes every measurement every time and returns them
 * as evidence; `decide` turns that into a verdict.
 */

import { CuvetteError } from '../../errors.ts';
import type { Engine } from '../core/engine.ts';
import { widthAt } from '../core/hook-points.ts';
import { logitOf } from '../core/logits.ts';
import { hashOf, hashOfNumbers } from '../core/manifest.ts';
import { pick } from '../core/missing.ts';
import { differenceOfMeans } from '../statistics/difference-of-means.ts';
import { createRandom } from '../statistics/random.ts';
import { project } from '../statistics/scores.ts';
import { mean } from '../statistics/summary.ts';
import { dot, norm } from '../statistics/vectors.ts';
import { measureAnswerFlips } from './answer-flips.ts';
import { chooseControls } from './controls.ts';
import { checkDataset, clustersOf, groupsBy, labelsOf } from './dataset.ts';
import { type Labelled, measureDecodability, scoreRows } from './decodability.ts';
import { fitDirection, givenDirection, rowsOf } from './direction.ts';
import { measureEffects } from './effects.ts';
import type { Evidence } from './evidence.ts';
import { type InterventionSample, signOfGap } from './intervention-sample.ts';
import { createMarginReader } from './logit-margins.ts';
import { onManifold, readManifold } from './manifold.ts';
import { measureNeutralText, PLAIN_SENTENCES } from './neutral-guard.ts';
import { choosePartners } from './partners.ts';
import type { CausalQuestion, DatasetRow } from './question.ts';
import { meanLogits, type ProtocolRun, readSite, tokenizeWithPosition } from './readings.ts';
import { splitRows } from './split.ts';
import { doseIn, measureSweep } from './sweep.ts';
import { chooseTarget } from './target.ts';
import { countTests } from './thresholds.ts';

export interface ProtocolContext {
  signal: AbortSignal;
  /** Sites and directions tried in this lab session, this one included. */
  family: number;
  /** Of the program. */
  version: string;
  /** Called with the number of runs of the model that are done, and about how many there will be. */
  onProgress?(done: number, about: number): void;
}

export async function runProtocol(
  engine: Engine,
  question: CausalQuestion,
  context: ProtocolContext,
): Promise<Evidence> {
  checkQuestion(engine, question);
  const { dataset, site, seed } = question;
  const width = widthAt(engine.describe(), site);
  const multiplicity = countTests(question, context.family);
  const split = splitRows(question, createRandom(seed, 'split'));
  const run = startRun(engine, context, split, multiplicity);

  const prompts = await tokenizeWithPosition(
    run,
    dataset.map((row) => row.prompt),
    site.position,
  );
  const neutral = await neutralPrompts(run, question);
  const data: Labelled = { dataset, activations: await readSite(run, prompts, site), width, seed };
  const fit = question.direction.kind === 'fit' ? question.direction : undefined;
  const direction =
    question.direction.kind === 'given'
      ? givenDirection(question.direction.vector, width)
      : fitDirection(
          rowsOf(data.activations, split.discovery, width),
          labelsOf(dataset, split.discovery),
          width,
          question.direction,
        );

  const looked = split.discovery.length > 0 ? split.discovery : split.test;
  const logits = await meanLogits(run, pick(prompts, looked, 'prompt'), labelsOf(dataset, looked));
  const target = await chooseTarget(engine, question, logits);
  const controls = await chooseControls(engine, question, target, middle(logits));

  const { partners, kinds } = choosePartners(dataset, split.intervened, createRandom(seed, 'partners'));
  const measures = measureDirection(data, split.test, direction);
  const chosen = rowsOf(data.activations, split.intervened, width);
  const sample: InterventionSample = {
    site,
    seed,
    width,
    labels: labelsOf(dataset, split.intervened),
    clusters: clustersOf(dataset, split.intervened),
    activations: split.intervened.map((_, i) => chosen.subarray(i * width, (i + 1) * width)),
    components: project(chosen, direction),
    partners,
    direction,
    swing: measures.swing,
  };
  const intervened = pick(prompts, split.intervened, 'prompt');
  const doseOf = doseIn(measures);
  const reader = await createMarginReader(run, intervened, target, controls);
  const effects = await measureEffects(reader, sample, multiplicity, doseOf);
  const gapSign = signOfGap(effects.behaviour.gap);
  const setup = { site, seed, prompts: intervened, direction, ...measures, target, controls, gapSign };
  const sweep = await measureSweep(run, setup, question.sweep);
  const answerFlips = await measureAnswerFlips(run, intervened, sample, target, gapSign);
  const manifold = await readManifold(run, [...pick(prompts, split.test, 'prompt'), ...neutral], site, seed);
  const harm = await measureNeutralText(run, neutral, site, direction, doseOf(Math.abs(measures.swing) / 2), seed);
  const matched = await scoreMatched(run, question, direction);

  return {
    format: 2,
    version: context.version,
    seed,
    model: modelOf(engine),
    data: summaryOf(question),
    site,
    split,
    direction: {
      kind: question.direction.kind,
      method: fit?.method ?? 'given',
      ...(question.direction.kind === 'given' &&
        question.direction.source !== undefined && { source: question.direction.source }),
      vector: Array.from(direction),
      hash: hashOfNumbers(direction),
      ...measures,
    },
    target,
    controls,
    decodability: measureDecodability(data, split, direction, fit, multiplicity.nulls),
    ...effects,
    interchange: { ...effects.interchange, answerFlips, partners: kinds },
    multiplicity,
    sweep,
    guards: { onManifold: onManifold(direction, manifold, width), neutral: harm },
    ...(matched && { structureMatched: matched }),
    naming: {
      required: question.nameRequired ?? false,
      ...(question.featureName !== undefined && { name: question.featureName }),
    },
  };
}

function checkQuestion(engine: Engine, question: CausalQuestion): void {
  const { layers, id } = engine.describe();
  if (question.site.layer >= layers) {
    throw new CuvetteError(
      'invalid_input',
      `There is no layer ${question.site.layer}: the model ${id} has layers 0 to ${layers - 1}.`,
    );
  }
  checkDataset(question.dataset);
  if (question.structureMatched) checkDataset(question.structureMatched, 'The structure-matched set', 4);
}

function startRun(
  engine: Engine,
  context: ProtocolContext,
  split: Evidence['split'],
  { nulls }: Evidence['multiplicity'],
): ProtocolRun {
  const { signal } = context;
  const rows = split.intervened.length;
  const about = 3 * (split.discovery.length + split.test.length) + rows * (4 * nulls + 45);
  let done = 0;
  return {
    engine,
    signal,
    advance(count) {
      done += count;
      context.onProgress?.(done, Math.max(done, about));
    },
  };
}

async function neutralPrompts(run: ProtocolRun, question: CausalQuestion): Promise<number[][]> {
  const { context } = run.engine.describe();
  const texts = question.neutralPrompts ?? PLAIN_SENTENCES;
  const prompts = (await run.engine.tokenize(texts)).map((tokens) => tokens.slice(0, context));
  const usable = prompts.filter((tokens) => tokens.length > 2);
  if (usable.length > 0) return usable;
  throw new CuvetteError(
    'invalid_input',
    'None of the neutral prompts has three tokens or more. Give a few plain sentences of the language that the model knows.',
  );
}

/** The distance between the class means of the test half, along the direction and in all, and the mean norm of activations. */
function measureDirection({ dataset, activations, width }: Labelled, test: readonly number[], direction: Float32Array) {
  const rows = rowsOf(activations, test, width);
  const difference = differenceOfMeans(rows, labelsOf(dataset, test));
  const swing = dot(difference, direction);
  const length = norm(difference);
  return {
    swing,
    norm: mean(test.map((_, i) => norm(rows.subarray(i * width, (i + 1) * width)))),
    difference: { length, along: length === 0 ? 0 : (swing / length) ** 2 },
  };
}

async function scoreMatched(
  run: ProtocolRun,
  question: CausalQuestion,
  direction: Float32Array,
): Promise<Evidence['structureMatched']> {
  const { structureMatched: dataset, site, seed } = question;
  if (!dataset) return undefined;
  const texts = dataset.map((row) => row.prompt);
  const prompts = await tokenizeWithPosition(run, texts, site.position);
  const data = { dataset, activations: await readSite(run, prompts, site), width: direction.length, seed };
  return scoreRows(data, [...dataset.keys()], direction, 'the structure-matched set');
}

function modelOf(engine: Engine): Evidence['model'] {
  const { id, engine: name, architecture, layers, width, dtype, weights, tokenizer } = engine.describe();
  return { id, engine: name, architecture, layers, width, dtype, weights, tokenizer };
}

function summaryOf({ dataset, neutralPrompts: neutral, structureMatched }: CausalQuestion): Evidence['data'] {
  const positives = dataset.filter((row) => row.label === 1).length;
  const count = (keyOf: (row: DatasetRow) => string | undefined) => groupsBy(dataset, keyOf).size;
  return {
    hash: hashOf({ dataset, neutral, structureMatched }),
    rows: dataset.length,
    positives,
    negatives: dataset.length - positives,
    pairs: count((row) => row.pair),
    templates: count((row) => row.template),
  };
}

function middle([a, b]: readonly [Float64Array, Float64Array]): Float64Array {
  return a.map((value, i) => (value + logitOf(b, i)) / 2);
}
