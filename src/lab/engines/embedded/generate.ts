/** Generates text: computes prompts as a run does, then extends all texts together, token by token, with their interventions. */

import type { GenerateRequest, Variant } from '../../core/engine.ts';
import { likeliest, logitOf } from '../../core/logits.ts';
import { missing } from '../../core/missing.ts';
import { isLongText } from '../../models/architectures/rotary.ts';
import { createRandom, type Random } from '../../statistics/random.ts';
import type { BaseNeed } from './base-runs.ts';
import { splitBySize } from './batch.ts';
import { addInterventions, type Change, firstChange } from './interventions.ts';
import { type CachedPrompt, residualRow } from './kv-cache.ts';
import { ROWS_AT_ONCE } from './layers.ts';
import type { Model } from './model.ts';
import { eachOnce } from './run.ts';
import type { Hook, KeyValueStore, Sequence } from './sequence.ts';

export function generate(model: Model, request: GenerateRequest): number[][] {
  const { prompts, variants = eachOnce(prompts), temperature = 0, seed = 0 } = request;
  const texts = variants.map((variant, number): Text => {
    const tokens = prompts[variant.prompt] ?? missing('prompt', variant.prompt);
    const choose = temperature > 0 ? sampling(temperature, createRandom(seed, `text ${number}`)) : likeliest;
    const room = Math.min(request.maxNewTokens, model.spec.context - tokens.length);
    return { variant, tokens, choose, room, change: firstChange(variant.interventions, tokens.length), generated: [] };
  });
  for (const group of splitBySize(texts, (text) => storeBytes(model, text), model.limits.atOnce)) {
    growTogether(model, group);
    model.cache.evict();
  }
  return texts.map(({ generated }) => generated);
}

interface Text {
  variant: Variant;
  /** Of the prompt. */
  tokens: readonly number[];
  change: Change | undefined;
  choose: ChooseToken;
  /** How many tokens may be generated. */
  room: number;
  generated: number[];
}

/** A text with what has been computed of it. */
interface Growing extends Text {
  cached: CachedPrompt;
  own: KeyValueStore;
  /** Nothing is taken from the cached prompt any more. */
  isOnItsOwn: boolean;
}

function growTogether(model: Model, texts: readonly Text[]): void {
  const growing: Growing[] = texts
    .filter(({ room }) => room > 0)
    .map((text) => ({
      ...text,
      cached: model.cache.get(text.tokens),
      own: allocateStore(model, text),
      isOnItsOwn: false,
    }));
  try {
    let atWork = begin(model, growing);
    while (atWork.length > 0) atWork = growByOne(model, atWork);
  } finally {
    for (const { own } of growing) model.heap.free(own.address);
  }
}

/** Computes the prompts, and takes each text's first token. Gives back the texts that go on. */
function begin(model: Model, texts: readonly Growing[]): Growing[] {
  const { layers } = model.spec;
  const needs = new Map<CachedPrompt, BaseNeed>();
  for (const { cached, change } of texts) {
    const need = needs.get(cached) ?? { cached, residuals: new Set(), reads: [] };
    needs.set(cached, need);
    if (!change) need.residuals.add(layers);
    else if (change.start > 0) need.residuals.add(change.start);
  }
  model.bases.compute([...needs.values()], layers);

  const unchanged = texts.filter(({ change }) => !change);
  const changed = texts.filter(({ change }) => change);
  takeTokens(
    model,
    unchanged.map((text) => ({ text, address: residualRow(text.cached, layers, text.tokens.length - 1) })),
  );
  for (const group of splitBySize(changed, (text) => text.tokens.length - changeOf(text).first, ROWS_AT_ONCE)) {
    computeAndTake(model, group.map(firstSequence));
  }
  return texts.filter(goesOn);
}

function growByOne(model: Model, texts: readonly Growing[]): Growing[] {
  const next = texts.map((text) => nextSequence(model, text));
  for (const group of splitBySize(next, ({ sequence }) => sequence.tokens.length, ROWS_AT_ONCE)) {
    computeAndTake(model, group);
  }
  return texts.filter(goesOn);
}

function computeAndTake(model: Model, work: readonly { text: Growing; sequence: Sequence }[]): void {
  const { residual, stride } = model.layers.run(
    work.map(({ sequence }) => sequence),
    model.spec.layers,
  );
  const last = ({ sequence }: { sequence: Sequence }) => residual(sequence) + (sequence.tokens.length - 1) * stride;
  takeTokens(
    model,
    work.map((one) => ({ text: one.text, address: last(one) })),
  );
}

/** Chooses a next token for each text from the residual stream of its last row. A token that ends the text is left out, and its room becomes 0. */
function takeTokens(model: Model, rows: readonly { text: Growing; address: number }[]): void {
  const { endTokens } = model.spec;
  model.predictions.logits(
    rows.map(({ address }) => address),
    {
      take(index, logits) {
        const { text } = rows[index] ?? missing('text of row', index);
        const token = text.choose(logits);
        if (endTokens.includes(token)) text.room = 0;
        else text.generated.push(token);
      },
    },
  );
}

function goesOn({ generated, room }: Growing): boolean {
  return generated.length < room;
}

/** The prompt from its first change on. */
function firstSequence(text: Growing): { text: Growing; sequence: Sequence } {
  const { tokens, cached } = text;
  const { start, first } = changeOf(text);
  const input = start > 0 ? residualRow(cached, start, first) : 0;
  return { text, sequence: sequenceOf(text, { tokens: tokens.slice(first), first, start, input }) };
}

function changeOf({ change }: Text): Change {
  return change ?? missing('change of a text');
}

/** The token that was generated last; or the whole text, where that token makes it one with other rotary frequencies. */
function nextSequence({ spec }: Model, text: Growing): { text: Growing; sequence: Sequence } {
  const { tokens, generated } = text;
  const first = tokens.length + generated.length - 1;
  if (!isLongText(spec, first) && isLongText(spec, first + 1)) {
    text.isOnItsOwn = true;
    return { text, sequence: sequenceOf(text, { tokens: [...tokens, ...generated], first: 0, start: 0, input: 0 }) };
  }
  return { text, sequence: sequenceOf(text, { tokens: generated.slice(-1), first, start: 0, input: 0 }) };
}

function sequenceOf(text: Growing, rows: Pick<Sequence, 'tokens' | 'first' | 'start' | 'input'>): Sequence {
  const { tokens, change, cached, own, variant } = text;
  const { length } = tokens;
  const hooks = new Map<number, Hook[]>();
  const end = rows.first + rows.tokens.length;
  addInterventions(hooks, variant.interventions, { length, first: rows.first, end });
  const parts = { ...rows, length: end, own, neededFrom: rows.first, hooks };
  if (text.isOnItsOwn) return { ...parts, shared: undefined };
  const before = change ? { length: change.first, changesAt: change.start } : { length, changesAt: 0 };
  const shared = { ...cached.store, ...before, lengthBefore: length };
  return { ...parts, shared };
}

function storeBytes({ spec }: Model, { tokens, change, room }: Text): number {
  const { length } = tokens;
  const becomesLong = !isLongText(spec, length) && isLongText(spec, length + room);
  const shared = becomesLong ? 0 : (change?.first ?? length);
  return 2 * spec.layers * (length - shared + room) * spec.keyValueHeads * spec.headWidth * 4;
}

function allocateStore(model: Model, text: Text): KeyValueStore {
  const bytes = storeBytes(model, text);
  return { address: model.heap.allocate(bytes), layerBytes: bytes / model.spec.layers };
}

type ChooseToken = (logits: Float32Array) => number;

/** Chooses the next token at random, with the probabilities of the logits at a temperature. */
function sampling(temperature: number, random: Random): ChooseToken {
  return (logits) => {
    const highest = logitOf(logits, likeliest(logits));
    const weights = Float64Array.from(logits, (logit) => Math.exp((logit - highest) / temperature));
    let left = random.uniform() * weights.reduce((sum, weight) => sum + weight, 0);
    for (let token = 0; token < weights.length; token++) {
      left -= weights[token] ?? missing('weight of token', token);
      if (left < 0) return token;
    }
    return likeliest(logits);
  };
}
