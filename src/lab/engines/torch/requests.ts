/** Encodes requests of the engine interface for the Python side, and decodes the tables that come back. A vector that several interventions share is sent once. */

import type {
  AttributionRequest,
  AttributionResult,
  ForwardRequest,
  GenerateRequest,
  HookPoint,
  Intervention,
  ModelDescription,
  Positions,
  VariantResult,
} from '../../core/engine.ts';
import { isInAttention, widthAt } from '../../core/hook-points.ts';
import { missing } from '../../core/missing.ts';
import { resolvePositions } from '../../core/positions.ts';
import { createRandom } from '../../statistics/random.ts';
import type { Numbers, Tensor } from './wire.ts';

interface Message {
  header: object;
  tensors: Tensor[];
}

export function encodeRun(request: ForwardRequest): Message {
  const { prompts, taps = [], logits, surprise = false } = request;
  const vectors = createVectorTable();
  const header = {
    do: 'run',
    lengths: prompts.map(({ length }) => length),
    variants: variantsOf(request, vectors),
    taps: taps.map(({ point, positions }) => [point.layer, point.place, positions, headOf(point)]),
    logits: logits?.positions ?? null,
    surprise,
  };
  const chosen = logits?.tokens;
  const tokens = chosen ? [{ shape: [chosen.length], data: Int32Array.from(chosen) }] : [];
  return { header, tensors: [tokensOf(prompts), vectors.tensor(), ...tokens] };
}

export function encodeGenerate(request: GenerateRequest): Message {
  const { prompts, maxNewTokens, temperature = 0, seed = 0 } = request;
  const vectors = createVectorTable();
  const header = {
    do: 'generate',
    lengths: prompts.map(({ length }) => length),
    variants: variantsOf(request, vectors),
    newTokens: maxNewTokens,
    temperature,
  };
  const texts = temperature > 0 ? (request.variants ?? prompts).length : 0;
  return { header, tensors: [tokensOf(prompts), vectors.tensor(), drawsOf(texts, maxNewTokens, seed)] };
}

export function encodeAttribution({ prompts, pairs, place, positions, target }: AttributionRequest): Message {
  const header = { do: 'attribute', lengths: prompts.map(({ length }) => length), pairs, place, positions, ...target };
  return { header, tensors: [tokensOf(prompts)] };
}

export function decodeAttribution(
  { pairs, place, positions }: AttributionRequest,
  [changes, margins]: readonly Numbers[],
  { layers, heads }: ModelDescription,
): AttributionResult {
  const sites = layers * (isInAttention(place) ? heads : 1) * positions.length;
  return {
    changes: createTaking(changes)(2 * pairs.length * sites),
    margins: createTaking(margins)(2 * pairs.length),
  };
}

/** The tables are those of the taps, then logits, log-probabilities and divergences. In each, the rows of one variant follow those of the other. */
export function decodeRun(
  { prompts, variants, taps = [], logits, surprise }: ForwardRequest,
  tables: readonly Numbers[],
  model: Pick<ModelDescription, 'width' | 'heads' | 'headWidth' | 'vocabulary'>,
): VariantResult[] {
  const [logitsTable = createTaking(), logProbabilities = createTaking(), divergences = createTaking()] = tables
    .slice(taps.length)
    .map(createTaking);
  const tapped = taps.map((tap, i) => ({ ...tap, take: createTaking(tables[i]) }));
  const columns = logits?.tokens?.length ?? model.vocabulary;
  const longest = Math.max(0, ...prompts.map(({ length }) => length));
  return (variants ?? prompts.map((_, prompt) => ({ prompt }))).map(({ prompt }): VariantResult => {
    const { length } = prompts[prompt] ?? missing('prompt', prompt);
    const rows = (positions: Positions) => resolvePositions(positions, length).length;
    return {
      activations: tapped.map(({ point, positions, take }) => {
        // Rows of patterns come with as many columns as the longest prompt has tokens.
        const found = take(rows(positions) * widthAt(model, point, longest));
        return point.place === 'pattern' ? cutRows(found, longest, length) : found;
      }),
      ...(logits && { logits: logitsTable(rows(logits.positions) * columns) }),
      ...(surprise && {
        surprise: { logProbabilities: logProbabilities(length - 1), divergences: divergences(length) },
      }),
    };
  });
}

/** The first `kept` columns of a matrix. */
function cutRows(matrix: Float32Array, columns: number, kept: number): Float32Array {
  const rows = new Float32Array((matrix.length / columns) * kept);
  for (let from = 0, to = 0; from < matrix.length; from += columns, to += kept)
    rows.set(matrix.subarray(from, from + kept), to);
  return rows;
}

/** Returns a function that takes the next numbers of a table. */
function createTaking(table?: Numbers): (count: number) => Float32Array {
  let taken = 0;
  return (count) => {
    const numbers = table instanceof Float32Array ? table.slice(taken, taken + count) : new Float32Array();
    taken += count;
    if (numbers.length === count) return numbers;
    throw new Error('The torch engine has answered with fewer numbers than it was asked for.');
  };
}

interface VectorTable {
  number(vector: Float32Array): number;
  tensor(): Tensor;
}

/** Vectors of several widths are filled up with zeros to that of the widest. */
function createVectorTable(): VectorTable {
  const numbers = new Map<Float32Array, number>();
  return {
    number(vector) {
      const known = numbers.get(vector) ?? numbers.size;
      numbers.set(vector, known);
      return known;
    },
    tensor() {
      const width = Math.max(0, ...[...numbers.keys()].map(({ length }) => length));
      const data = new Float32Array(numbers.size * width);
      for (const [vector, number] of numbers) data.set(vector, number * width);
      return { shape: [numbers.size, width], data };
    },
  };
}

function variantsOf({ variants }: Pick<ForwardRequest, 'variants'>, vectors: VectorTable): object | null {
  return (
    variants?.map(({ prompt, interventions }) => [prompt, interventions.map((one) => encode(one, vectors))]) ?? null
  );
}

function encode(intervention: Intervention, vectors: VectorTable): (string | number | Positions)[] {
  const { point, positions, kind } = intervention;
  const encoded = (what: string, vector: Float32Array, source?: Float32Array) => [
    ...[point.layer, point.place, what, positions],
    ...[vectors.number(vector), source ? vectors.number(source) : -1, headOf(point)],
  ];
  switch (kind) {
    case 'add':
    case 'set':
      return encoded(kind, intervention.vector);
    case 'project-out':
      return encoded(kind, intervention.direction);
    case 'interchange':
      return encoded(intervention.part, intervention.direction, intervention.source);
  }
}

/** The number of the head, or what stands for all of them. */
function headOf({ head = -1 }: HookPoint): number {
  return head;
}

function tokensOf(prompts: ForwardRequest['prompts']): Tensor {
  const data = Int32Array.from(prompts.flat());
  return { shape: [data.length], data };
}

/** The same as the embedded engine draws, so that the same seed gives the same text as long as the logits agree. */
function drawsOf(texts: number, tokens: number, seed: number): Tensor {
  const data = new Float64Array(texts * tokens);
  for (let text = 0; text < texts; text++) {
    const random = createRandom(seed, `text ${text}`);
    for (let i = 0; i < tokens; i++) data[text * tokens + i] = random.uniform();
  }
  return { shape: [texts, tokens], data };
}
