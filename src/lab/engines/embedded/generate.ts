/** Owns generating: prompts are computed as in a run, then all texts grow together, token by token, with their interventions. */

import type { GenerateRequest, Variant } from '../../core/engine.ts';
import { likeliest } from '../../core/logits.ts';
import { missing } from '../../core/missing.ts';
import { createRandom } from '../../statistics/random.ts';
import type { BaseNeed } from './base-runs.ts';
import { inGroups } from './groups.ts';
import { addInterventions, type Change, firstChange } from './interventions.ts';
import type { KeyValueStore, Lane, Visit } from './lane.ts';
import { ROWS_AT_ONCE } from './layers.ts';
import type { Model } from './model.ts';
import { type PromptRecord, residualRow } from './prompt-records.ts';
import { eachOnce } from './run.ts';
import { type Choosing, sampling } from './sampling.ts';

export function generate(model: Model, request: GenerateRequest): number[][] {
  const { prompts, variants = eachOnce(prompts), temperature = 0, seed = 0 } = request;
  const texts = variants.map((variant, number): Text => {
    const tokens = prompts[variant.prompt] ?? missing('prompt', variant.prompt);
    const choose = temperature > 0 ? sampling(temperature, createRandom(seed, `text ${number}`)) : likeliest;
    const room = Math.min(request.maxNewTokens, model.spec.context - tokens.length);
    return { variant, tokens, choose, room, change: firstChange(variant.interventions, tokens.length), generated: [] };
  });
  for (const group of inGroups(texts, (text) => storeBytes(model, text), model.rooms.atOnce)) {
    growTogether(model, group);
    model.records.trim();
  }
  return texts.map(({ generated }) => generated);
}

interface Text {
  variant: Variant;
  /** Of the prompt. */
  tokens: readonly number[];
  change: Change | undefined;
  choose: Choosing;
  /** How many tokens may be generated. */
  room: number;
  generated: number[];
}

/** A text with what has been computed of it. */
interface Growing extends Text {
  record: PromptRecord;
  own: KeyValueStore;
}

function growTogether(model: Model, texts: readonly Text[]): void {
  const growing: Growing[] = texts
    .filter(({ room }) => room > 0)
    .map((text) => ({ ...text, record: model.records.of(text.tokens), own: allocateStore(model, text) }));
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
  const needs = new Map<PromptRecord, BaseNeed>();
  for (const { record, change } of texts) {
    const need = needs.get(record) ?? { record, residuals: new Set(), reads: [] };
    needs.set(record, need);
    if (!change) need.residuals.add(layers);
    else if (change.start > 0) need.residuals.add(change.start);
  }
  model.bases.compute([...needs.values()], layers);

  const unchanged = texts.filter(({ change }) => !change);
  const changed = texts.filter(({ change }) => change);
  takeTokens(
    model,
    unchanged.map((text) => ({ text, address: residualRow(text.record, layers, text.tokens.length - 1) })),
  );
  for (const group of inGroups(changed, (text) => text.tokens.length - changeOf(text).first, ROWS_AT_ONCE)) {
    computeAndTake(model, group.map(firstLane));
  }
  return texts.filter(goesOn);
}

function growByOne(model: Model, texts: readonly Growing[]): Growing[] {
  for (const group of inGroups(texts, () => 1, ROWS_AT_ONCE)) computeAndTake(model, group.map(nextLane));
  return texts.filter(goesOn);
}

function computeAndTake(model: Model, work: readonly { text: Growing; lane: Lane }[]): void {
  const { residual, stride } = model.layers.run(
    work.map(({ lane }) => lane),
    model.spec.layers,
  );
  const last = ({ lane }: { lane: Lane }) => residual(lane) + (lane.tokens.length - 1) * stride;
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
function firstLane(text: Growing): { text: Growing; lane: Lane } {
  const { tokens, record } = text;
  const { start, first } = changeOf(text);
  const input = start > 0 ? residualRow(record, start, first) : 0;
  return { text, lane: laneOf(text, { tokens: tokens.slice(first), first, start, input }) };
}

function changeOf({ change }: Text): Change {
  return change ?? missing('change of a text');
}

/** The token that was generated last. */
function nextLane(text: Growing): { text: Growing; lane: Lane } {
  const first = text.tokens.length + text.generated.length - 1;
  return { text, lane: laneOf(text, { tokens: text.generated.slice(-1), first, start: 0, input: 0 }) };
}

function laneOf(text: Growing, rows: Pick<Lane, 'tokens' | 'first' | 'start' | 'input'>): Lane {
  const { tokens, change, record, own, variant } = text;
  const { length } = tokens;
  const visits = new Map<number, Visit[]>();
  const end = rows.first + rows.tokens.length;
  addInterventions(visits, variant.interventions, { length, first: rows.first, end });
  const before = change ? { length: change.first, changesAt: change.start } : { length, changesAt: 0 };
  const shared = { ...record.store, ...before, lengthBefore: length };
  return { ...rows, shared, own, visits };
}

function storeBytes({ spec }: Model, { tokens, change, room }: Text): number {
  const positions = tokens.length - (change?.first ?? tokens.length) + room;
  return 2 * spec.layers * positions * spec.keyValueHeads * spec.headWidth * 4;
}

function allocateStore(model: Model, text: Text): KeyValueStore {
  const bytes = storeBytes(model, text);
  return { address: model.heap.allocate(bytes), layerBytes: bytes / model.spec.layers };
}
