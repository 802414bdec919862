/** Rejects requests that a model cannot compute, with an error that names the prompt, hook point or vector that is wrong. */

import { CuvetteError } from '../../errors.ts';
import type {
  AttributionRequest,
  ForwardRequest,
  GenerateRequest,
  HookPoint,
  Intervention,
  ModelDescription,
  Positions,
} from '../core/engine.ts';
import { formatHookPoint, isInAttention, widthAt } from '../core/hook-points.ts';
import { missing } from '../core/missing.ts';
import { resolvePositions } from '../core/positions.ts';
import { checkPatternRow } from './pattern-row.ts';

/** What of a model limits what can be asked of it. */
type ModelLimits = Pick<ModelDescription, 'layers' | 'width' | 'heads' | 'headWidth' | 'vocabulary' | 'context'>;

export function checkRun(request: ForwardRequest, model: ModelLimits): void {
  checkTexts(request, model);
  for (const { point, positions } of request.taps ?? []) {
    checkPoint(point, model);
    checkInPrompts(positions, request);
  }
  if (!request.logits) return;
  checkInPrompts(request.logits.positions, request);
  for (const token of request.logits.tokens ?? []) checkToken(token, model, 'The logits that are asked for');
}

export function checkGenerate(request: GenerateRequest, model: ModelLimits): void {
  checkTexts(request, model);
  for (const { point, positions } of (request.variants ?? []).flatMap(({ interventions }) => interventions)) {
    if (point.place !== 'pattern' || !('from' in positions)) continue;
    throw refused(
      `Rows of ${formatHookPoint(point)} grow with the text, and cannot be set from a position on while it is generated. Give positions of the prompt.`,
    );
  }
  const { maxNewTokens, temperature = 0 } = request;
  if (!Number.isInteger(maxNewTokens) || maxNewTokens < 0) {
    throw refused(`The number of new tokens must be a whole number from 0 on, and not ${maxNewTokens}.`);
  }
  if (!(temperature >= 0 && temperature < Number.POSITIVE_INFINITY)) {
    throw refused(`The temperature must be 0 or above, and not ${temperature}. 0 takes the likeliest token.`);
  }
}

/** Rejects what a prompt lacks, a pair without two prompts, and patterns of prompts that differ in length, whose rows cannot be exchanged. */
export function checkAttribution(request: AttributionRequest, model: ModelLimits): void {
  const { prompts, pairs, place, positions, target } = request;
  for (const [number, tokens] of prompts.entries()) checkPrompt(tokens, number, model);
  for (const pair of pairs) {
    const [first = 0, second = 0] = pair.map((number) => {
      const { length } = prompts[number] ?? missing('prompt', number);
      checkPositions(positions, number, length);
      return length;
    });
    if (place === 'pattern' && first !== second)
      throw refused(
        `Patterns can be exchanged only between prompts with as many tokens, and prompts ${pair.join(' and ')} have ${first} and ${second}.`,
      );
  }
  if (isInAttention(place)) widthAt(model, { layer: 0, place, head: 0 }, model.context);
  for (const token of [...target.positive, ...target.negative]) checkToken(token, model, 'The target');
}

/** SAEs read the residual stream, what is added to it, or the outputs of all heads side by side. */
export function checkSaeRows(rows: Float32Array, width: number, model: ModelLimits): void {
  const { headWidth = 0 } = model;
  if (width !== model.width && width !== model.heads * headWidth)
    throw refused(`The SAE is ${width} wide, and the model ${model.width}. It belongs to another model.`);
  if (rows.length % width !== 0) {
    throw refused(`${rows.length} numbers are no rows of ${width}. Give activations of this model, row by row.`);
  }
}

type Texts = Pick<ForwardRequest, 'prompts' | 'variants'>;

function checkTexts({ prompts, variants }: Texts, model: ModelLimits): void {
  for (const [number, tokens] of prompts.entries()) checkPrompt(tokens, number, model);
  for (const { prompt, interventions } of variants ?? []) {
    const tokens = prompts[prompt];
    if (!tokens) throw refused(`A variant is of prompt ${prompt}, and there are ${prompts.length}, counted from 0.`);
    for (const intervention of interventions) {
      const { point, positions } = intervention;
      checkPoint(point, model);
      checkPositions(positions, prompt, tokens.length);
      checkVectors(intervention, widthAt(model, point, tokens.length));
      if (point.place === 'pattern') checkPattern(intervention, tokens.length);
    }
  }
}

function checkPrompt(tokens: readonly number[], number: number, model: ModelLimits): void {
  if (tokens.length === 0) throw refused(`Prompt ${number} is empty. Give it at least one token.`);
  if (tokens.length > model.context) {
    throw refused(`Prompt ${number} has ${tokens.length} tokens; ${model.context} fit into the model. Shorten it.`);
  }
  for (const token of tokens) checkToken(token, model, `Prompt ${number}`);
}

function checkToken(token: number, { vocabulary }: ModelLimits, where: string): void {
  if (Number.isInteger(token) && token >= 0 && token < vocabulary) return;
  const range = `the model's tokens are 0 to ${vocabulary - 1}`;
  throw refused(`${where} has token ${token}; ${range}. Use the tokenizer that belongs to the model.`);
}

function checkPoint(point: HookPoint, model: ModelLimits): void {
  const { layer } = point;
  if (!(Number.isInteger(layer) && layer >= 0 && layer < model.layers))
    throw refused(`There is no layer ${layer}. The model has layers 0 to ${model.layers - 1}.`);
  if (!isInAttention(point.place) && point.head !== undefined)
    throw refused(`${formatHookPoint(point)} is of no head, and head ${point.head} is asked for. Heads have hook_z.`);
  widthAt(model, point, model.context);
}

function checkPattern(intervention: Intervention, length: number): void {
  const where = formatHookPoint(intervention.point);
  if (intervention.kind !== 'set' && intervention.kind !== 'add')
    throw refused(
      `${where} takes no ${intervention.kind}: its rows are distributions, and have no directions. Set a row.`,
    );
  if (intervention.kind === 'add') return;
  for (const position of resolvePositions(intervention.positions, length))
    checkPatternRow(intervention.vector, position, where);
}

function checkInPrompts(positions: Positions, { prompts, variants }: Texts): void {
  const used = variants ? new Set(variants.map(({ prompt }) => prompt)) : prompts.keys();
  for (const number of used) {
    const { length } = prompts[number] ?? missing('prompt', number);
    checkPositions(positions, number, length);
  }
}

function checkPositions(positions: Positions, prompt: number, length: number): void {
  for (const position of 'from' in positions ? [positions.from] : positions) {
    if (Number.isInteger(position) && position >= -length && position < length) continue;
    const advice = 'Positions count from 0, or from the end as -1, -2, and so on.';
    throw refused(`Position ${position} is outside prompt ${prompt}, which has ${length} tokens. ${advice}`);
  }
}

function checkVectors(intervention: Intervention, width: number): void {
  const where = () => `at ${formatHookPoint(intervention.point)}`;
  for (const [name, vector] of vectorsOf(intervention)) {
    if (vector.length !== width) {
      throw refused(`The ${name} ${where()} has ${vector.length} numbers, and the model is ${width} wide there.`);
    }
    if (!areFinite(vector)) throw refused(`The ${name} ${where()} has a number that is not finite.`);
    if (name === 'direction' && vector.every((value) => value === 0)) {
      throw refused(`The direction ${where()} is 0 everywhere, and so has no component. Give another.`);
    }
  }
}

/** Adds up zeros, of which a number that is not finite makes none: a protocol checks millions of numbers, and a call for each takes long. */
function areFinite(vector: Float32Array): boolean {
  let sum = 0;
  for (let i = 0; i < vector.length; i++) sum += 0 * (vector[i] ?? missing('number', i));
  return sum === 0;
}

function vectorsOf(intervention: Intervention): [name: string, vector: Float32Array][] {
  if ('vector' in intervention) return [['vector', intervention.vector]];
  if ('source' in intervention) {
    return [
      ['direction', intervention.direction],
      ['source', intervention.source],
    ];
  }
  return [['direction', intervention.direction]];
}

function refused(message: string): CuvetteError {
  return new CuvetteError('invalid_input', message);
}
