/**
 * Runs the causality protocol, which tests whether a model uses a direction or only carries it. Makes every measurement every time and returns them
 * as evidence; `decide` turns that into a verdict, and tells here only whether more random directions could change it.
 */

import { CuvetteError } from '../../errors.ts';
import type { Engine } from '../core/engine.ts';
import { widthAt } from '../core/hook-points.ts';
import { logitOf } from '../core/logits.ts';
import { hashOf, hashOfNumbers } from '../core/manifest.ts';
import { missing, pick } from '../core/missing.ts';
import { shareOf } from '../statistics/proportion.ts';
import { createRandom } from '../statistics/random.ts';
import { nameOfClass } from './classes.ts';
import { chooseControls } from './controls.ts';
import { checkDataset, classesOf, classSizes, clustersOf, groupsBy, labelsOf } from './dataset.ts';
import { decide } from './decide.ts';
import { facingLabels, type Labelled, measureDecodability, scoreRows } from './decodability.ts';
import { askedWords, measureDirection } from './direction-measures.ts';
import { fitRuns, prepareFits } from './discovery-fit.ts';
import { displaceLikewise } from './displacements.ts';
import { measureDormancy } from './dormancy.ts';
import { measureEffects } from './effects.ts';
import type { Evidence } from './evidence.ts';
import { type InterventionSample, signOfGap } from './intervention-sample.ts';
import { createMarginReader, type MarginReader } from './logit-margins.ts';
import { measureNeutralText, PLAIN_SENTENCES } from './neutral-text.ts';
import { measureOutcomes } from './outcomes.ts';
import { choosePartners } from './partners.ts';
import type { CausalQuestion, DatasetRow } from './question.ts';
import { type NullPlan, planNulls, type RandomTests, testAgainstRandom } from './random-directions.ts';
import { meanLogits, type ProtocolRun, readSite, tokenizeWithPosition } from './readings.ts';
import { splitRows } from './split.ts';
import { randomSubspace, type Subspace } from './subspace.ts';
import { doseIn, measureSweep } from './sweep.ts';
import { chooseTarget } from './target.ts';
import { type TestedPart, testedPart } from './tested-part.ts';

/** Of the random directions that are given the tested displacement, and of the differences between counterfactuals. */
const DOSE_MATCHED = 39;
const DIFFERENCES = 256;

export interface ProtocolContext {
  signal: AbortSignal;
  /** Which question of the lab session this is, from 1 on: it decides how much of the session's error rate the question may spend. */
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
  const plan = planNulls(question, context.family);
  const split = splitRows(question, createRandom(seed, 'split'));
  const run = startRun(engine, context, question, split, plan);

  const prompts = await tokenizeWithPosition(
    run,
    dataset.map((row) => row.prompt),
    site.position,
  );
  const neutral = await neutralPrompts(run, question);
  const data: Labelled = { dataset, activations: await readSite(run, prompts, site), width, seed };
  const looked = split.discovery.length > 0 ? split.discovery : split.test;
  const classes = classesOf(dataset);
  const logits = await meanLogits(run, pick(prompts, looked, 'prompt'), labelsOf(dataset, looked), classes);
  const target = await chooseTarget(engine, question, logits);
  const controls = await chooseControls(engine, question, target, middleLogits(logits));

  const discovered = { dataset, seed, prompts, discovery: split.discovery, target, controls };
  const fitAt = await prepareFits(run, [question.direction], discovered);
  const fitted = await fitAt(question.direction, site, data);
  const part = testedPart(question.direction, data, split, fitted?.subspace);
  const { direction, subspace } = part;
  const refit = question.direction.kind === 'fit' && !fitted ? question.direction : undefined;
  const facing = { ...part, direction: isFacing(part, refit) ? direction : facingLabels(data, split.test, direction) };
  const decodability = measureDecodability(data, split, facing, refit, plan.first);
  const matched = await scoreMatched(run, question, facing);

  const { partners, kinds } = choosePartners(dataset, split.intervened, createRandom(seed, 'partners'));
  const measures = measureDirection(data, split.test, direction);
  const sample: InterventionSample = {
    site,
    seed,
    width,
    labels: labelsOf(dataset, split.intervened),
    classes,
    clusters: clustersOf(dataset, split.intervened),
    activations: split.intervened.map((row) => rowOf(data, row)),
    partners,
    subspace,
  };
  const intervened = pick(prompts, split.intervened, 'prompt');
  const doseOf = doseIn(measures);
  const dose = doseOf(Math.abs(measures.swing) / 2);
  const reader = await createMarginReader(run, intervened, target, controls);
  const effects = await measureEffects(reader, sample, dose);
  const gapSign = signOfGap(effects.behaviour.gap);
  const asks = askedWords(data, split.test, direction, target, { swing: measures.swing, gapSign });
  const setup = { site, seed, prompts: intervened, direction, ...measures, asks, controls };
  const sweep = await measureSweep(run, setup, question.sweep);
  const outcomes = await measureOutcomes(run, intervened, sample, split.intervened, { target, controls }, gapSign);
  const dormancy = await measureDormancy(reader, sample, naturalDifferences(data));
  const doseMatched = await matchDoses(reader, sample, effects.interchange);

  const neutralText = await measureNeutralText(run, neutral, site, direction, dose, seed);

  const evidenceWith = ({ steering, interchange, ablation, multiplicity, untoldAtRandom }: RandomTests): Evidence => ({
    format: 3,
    version: context.version,
    seed,
    model: modelOf(engine),
    data: summaryOf(question),
    site,
    split,
    direction: {
      kind: question.direction.kind,
      method: question.direction.kind === 'fit' ? question.direction.method : 'given',
      ...(question.direction.kind === 'given' &&
        question.direction.source !== undefined && { source: question.direction.source }),
      vector: Array.from(direction),
      ...(subspace.vectors.length > 1 && { basis: subspace.vectors.map((vector) => Array.from(vector)) }),
      ...(fitted && { search: fitted.search }),
      hash: hashOfNumbers(subspace.vectors.length > 1 ? flattened(subspace) : direction),
      ...measures,
    },
    target,
    controls,
    decodability,
    behaviour: effects.behaviour,
    steering: { ...effects.steering, ...steering },
    interchange: {
      ...effects.interchange,
      ...interchange,
      answerFlips: outcomes.answerFlips,
      answers: outcomes.answers,
      partners: kinds,
    },
    ablation: { ...effects.ablation, ...ablation },
    temperature: { ...effects.temperature, untoldAtRandom },
    multiplicity,
    sweep,
    dormancy,
    harm: outcomes.harm,
    specificity: {
      doseMatched,
      neutral: neutralText,
      ...(outcomes.otherWords && { otherWords: outcomes.otherWords }),
    },
    examples: outcomes.examples,
    ...(matched && { structureMatched: matched }),
    naming: {
      required: question.nameRequired ?? false,
      ...(question.featureName !== undefined && { name: question.featureName }),
    },
  });
  const tests = await testAgainstRandom(reader, sample, effects, plan, (found) => {
    const { verdict, reason } = decide(evidenceWith(found));
    return `${verdict} : ${reason}`;
  });
  return evidenceWith(tests);
}

function flattened({ vectors, width }: Subspace): Float32Array {
  const numbers = new Float32Array(vectors.length * width);
  for (const [i, vector] of vectors.entries()) numbers.set(vector, i * width);
  return numbers;
}

function rowOf({ activations, width }: Labelled, row: number): Float32Array {
  return activations.subarray(row * width, (row + 1) * width);
}

/** The differences between counterfactuals in all of the data, as far as they are needed to tell where they lie. */
function naturalDifferences(data: Labelled): Float32Array[] {
  const random = createRandom(data.seed, 'natural differences');
  const rows = random.shuffle(data.dataset.keys()).slice(0, DIFFERENCES);
  const { partners } = choosePartners(data.dataset, rows, random);
  return rows.map((row, i) => {
    const partner = rowOf(data, rows[partners[i] ?? missing('partner of row', row)] ?? missing('row of partner', i));
    return rowOf(data, row).map((value, axis) => (partner[axis] ?? missing('number', axis)) - value);
  });
}

/** Random directions with the tested displacement, which is natural for none of them: how many do as much. */
async function matchDoses(
  reader: MarginReader,
  sample: InterventionSample,
  { value, whole }: Pick<Evidence['interchange'], 'value' | 'whole'>,
): Promise<Evidence['specificity']['doseMatched']> {
  const random = createRandom(sample.seed, 'dose-matched directions');
  const rank = sample.subspace.vectors.length;
  const others = Array.from({ length: DOSE_MATCHED }, () => randomSubspace(sample.width, rank, random));
  const moved = (await displaceLikewise(reader, sample, others)).map((part) => part / whole);
  return { null: moved, asMuch: shareOf(moved.filter((one) => Math.abs(one) >= Math.abs(value)).length, moved.length) };
}

function checkQuestion(engine: Engine, question: CausalQuestion): void {
  const { layers, id } = engine.describe();
  if (question.site.layer >= layers) {
    throw new CuvetteError(
      'invalid_input',
      `There is no layer ${question.site.layer}: the model ${id} has layers 0 to ${layers - 1}.`,
    );
  }
  const { dataset, structureMatched, classes } = question;
  checkDataset(dataset, classes);
  if (!structureMatched) return;
  checkDataset(structureMatched, classes, 'The structure-matched set', 4);
  if (classesOf(structureMatched) === classesOf(dataset)) return;
  throw new CuvetteError(
    'invalid_input',
    `The structure-matched set has ${classesOf(structureMatched)} classes, and the dataset ${classesOf(dataset)}. Give rows of the same classes.`,
  );
}

/** What was fitted to labels, or is scored between class means, faces the way that it was found. */
function isFacing({ lines, isOriented }: TestedPart, refit: unknown): boolean {
  return lines !== undefined || isOriented === true || refit !== undefined;
}

function startRun(
  engine: Engine,
  context: ProtocolContext,
  { dataset, direction }: CausalQuestion,
  split: Evidence['split'],
  { first }: NullPlan,
): ProtocolRun {
  const { signal } = context;
  const rows = split.intervened.length;
  const kinds = classesOf(dataset) + 2;
  const about =
    3 * (split.discovery.length + split.test.length) +
    rows * (kinds * first + DOSE_MATCHED + 50) +
    fitRuns([direction]);
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

async function scoreMatched(
  run: ProtocolRun,
  question: CausalQuestion,
  part: Pick<TestedPart, 'direction' | 'lines'>,
): Promise<Evidence['structureMatched']> {
  const { structureMatched: dataset, site, seed } = question;
  if (!dataset) return undefined;
  const texts = dataset.map((row) => row.prompt);
  const prompts = await tokenizeWithPosition(run, texts, site.position);
  const data = { dataset, activations: await readSite(run, prompts, site), width: part.direction.length, seed };
  return scoreRows(data, [...dataset.keys()], part, 'the structure-matched set');
}

export function modelOf(engine: Engine): Evidence['model'] {
  const { id, engine: name, architecture, layers, width, dtype, weights, tokenizer } = engine.describe();
  return { id, engine: name, architecture, layers, width, dtype, weights, tokenizer };
}

export function summaryOf({
  dataset,
  neutralPrompts: neutral,
  structureMatched,
  classes: names,
}: Pick<CausalQuestion, 'dataset' | 'neutralPrompts' | 'structureMatched' | 'classes'>): Evidence['data'] {
  const sizes = classSizes(dataset);
  const [negatives = missing('class', 0), positives = missing('class', 1)] = sizes;
  const count = (keyOf: (row: DatasetRow) => string | undefined) => groupsBy(dataset, keyOf).size;
  return {
    hash: hashOf({ dataset, neutral, structureMatched }),
    rows: dataset.length,
    positives,
    negatives,
    ...((names || sizes.length > 2) && {
      classes: sizes.map((rows, index) => ({ name: nameOfClass(names, index), rows })),
    }),
    pairs: count((row) => row.pair),
    templates: count((row) => row.template),
  };
}

/** The mean over classes. */
export function middleLogits([first = missing('class', 0), ...others]: readonly Float64Array[]): Float64Array {
  return first.map((value, i) => others.reduce((sum, logits) => sum + logitOf(logits, i), value) / (others.length + 1));
}
