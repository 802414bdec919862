/** Rejects requests that a model cannot compute, with an error that names the prompt, hook point or vector that is wrong. */

import { CuvetteError } from '../../errors.ts';
import type {
  ForwardRequest,
  GenerateRequest,
  HookPoint,
  Intervention,
  ModelDescription,
  Positions,
} from '../core/engine.ts';
import { formatHookPoint } from '../core/hook-points.ts';
import { missing } from '../core/missing.ts';

/** What of a model limits what can be asked of it. */
type ModelLimits = Pick<ModelDescription, 'layers' | 'width' | 'vocabulary' | 'context'>;

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
  const { maxNewTokens, temperature = 0 } = request;
  if (!Number.isInteger(maxNewTokens) || maxNewTokens < 0) {
    throw refused(`The number of new tokens must be a whole number from 0 on, and not ${maxNewTokens}.`);
  }
  if (!(temperature >= 0 && temperature < Number.POSITIVE_INFINITY)) {
    throw refused(`The temperature must be 0 or above, and not ${temperature}. 0 takes the likeliest token.`);
  }
}

export function checkSaeRows(rows: Float32Array, width: number, model: number): void {
  if (width !== model) throw refused(`The SAE is ${width} wide, and the model ${model}. It belongs to another model.`);
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
      checkPoint(intervention.point, model);
      checkPositions(intervention.positions, prompt, tokens.length);
      checkVectors(intervention, model.width);
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

function checkPoint({ layer }: HookPoint, { layers }: ModelLimits): void {
  if (Number.isInteger(layer) && layer >= 0 && layer < layers) return;
  throw refused(`There is no layer ${layer}. The model has layers 0 to ${layers - 1}.`);
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
  const where = `at ${formatHookPoint(intervention.point)}`;
  for (const [name, vector] of vectorsOf(intervention)) {
    if (vector.length !== width) {
      throw refused(`The ${name} ${where} has ${vector.length} numbers, and the model is ${width} wide.`);
    }
    if (!vector.every(Number.isFinite)) throw refused(`The ${name} ${where} has a number that is not finite.`);
    if (name === 'direction' && vector.every((value) => value === 0)) {
      throw refused(`The direction ${where} is 0 everywhere, and so has no component. Give another.`);
    }
  }
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
