/** Implements an engine small enough to compute by hand: two blocks, width 16, 40 words. Block 0 copies the number of the subject to later words; block 1 reads it to say "is" or "are". */

import type {
  Engine,
  ForwardRequest,
  HookPoint,
  Intervention,
  ModelDescription,
  Positions,
  VariantResult,
} from '../../src/lab/core/engine.ts';
import { resolvePositions } from '../../src/lab/core/positions.ts';
import { encodeSaePlainly } from '../../src/lab/sae/encode.ts';
import { createRandom } from '../../src/lab/statistics/random.ts';

const WIDTH = 16;
const NOUNS = ['cat', 'dog', 'key', 'book', 'tree', 'car', 'house', 'chair', 'lamp', 'boat', 'cup', 'road'];
const OTHERS = [
  'the',
  'near',
  'red',
  'old',
  'is',
  'are',
  'and',
  'of',
  'to',
  'in',
  'a',
  'that',
  'for',
  'it',
  'was',
  'by',
];
const WORDS = [...NOUNS, ...NOUNS.map((noun) => `${noun}s`), ...OTHERS];

const random = createRandom(1, 'toy');
const direction = () => Array.from(random.direction(WIDTH));
/** The number of the subject, and what the last block writes. */
export const NUMBER = direction();
const OUT = orthogonal(direction(), NUMBER);
const EMBEDDING = WORDS.map((word) => {
  const plain = orthogonal(orthogonal(direction(), NUMBER), OUT).map((value) => value * 2);
  const number = NOUNS.includes(word) ? -1 : NOUNS.includes(word.replace(/s$/, '')) ? 1 : 0;
  return plain.map((value, i) => value + number * (NUMBER[i] ?? 0));
});
const UNEMBEDDING = WORDS.map((word) => {
  const plain = direction().map((value) => value / 2);
  const sign = word === 'are' ? 4 : word === 'is' ? -4 : 0;
  return plain.map((value, i) => value + sign * (OUT[i] ?? 0));
});

/** Sentences about one thing (0) or several (1), no two alike, up to 288 pairs. */
export function toyPairs(count: number): { prompts: string[]; labels: (0 | 1)[]; pairs: string[] } {
  const frames = ['red', 'old', 'near'].flatMap((adjective) =>
    OTHERS.slice(8).flatMap((end) => NOUNS.map((noun) => ({ adjective, end, noun }))),
  );
  const chosen = createRandom(2, 'sentences').shuffle(frames).slice(0, count);
  const rows = chosen.flatMap(({ adjective, end, noun }, i) =>
    ([1, 0] as const).map((label) => ({
      prompt: `the ${adjective} ${noun}${label === 1 ? 's' : ''} near ${end}`,
      label,
      pair: `p${i}`,
    })),
  );
  return {
    prompts: rows.map(({ prompt }) => prompt),
    labels: rows.map(({ label }) => label),
    pairs: rows.map(({ pair }) => pair),
  };
}

export interface ToyEngine extends Engine {
  /** Requests so far. */
  requests: ForwardRequest[];
  isClosed: boolean;
}

export function createToyEngine(overrides: Partial<ModelDescription> = {}): ToyEngine {
  const description: ModelDescription = {
    id: 'toy',
    engine: 'embedded',
    architecture: 'Toy',
    layers: 2,
    width: WIDTH,
    heads: 1,
    vocabulary: WORDS.length,
    context: 64,
    parameters: 2 * WIDTH * WORDS.length,
    dtype: 'float64',
    device: 'cpu',
    weights: 'a'.repeat(64),
    tokenizer: 'b'.repeat(64),
    ...overrides,
  };
  const engine: ToyEngine = {
    requests: [],
    isClosed: false,
    describe: () => description,
    tokenize: async (texts) => texts.map((text) => text.trim().split(/\s+/).filter(Boolean).flatMap(tokensOf)),
    detokenize: async (tokens) => tokens.map((token) => ` ${WORDS[token]}`).join(''),
    async run(request, signal) {
      signal?.throwIfAborted();
      engine.requests.push(request);
      return run(request);
    },
    async generate({ prompts, variants = prompts.map((_, prompt) => ({ prompt, interventions: [] })), maxNewTokens }) {
      return variants.map(({ prompt, interventions }) => {
        const tokens = [...(prompts[prompt] ?? [])];
        const length = tokens.length;
        while (tokens.length < length + maxNewTokens) {
          const { logits } = forward(tokens, interventions, length);
          tokens.push(largest(logits(tokens.length - 1)));
        }
        return tokens.slice(length);
      });
    },
    encodeSae: async (sae, rows) => encodeSaePlainly(sae, rows),
    async close() {
      engine.isClosed = true;
    },
  };
  return engine;
}

/** Words that it does not know are spelled in pieces of two. */
function tokensOf(word: string): number[] {
  const known = WORDS.indexOf(word);
  if (known !== -1) return [known];
  return (word.match(/.{1,2}/g) ?? []).map((piece) => (piece.charCodeAt(0) * 7) % WORDS.length);
}

function run({ prompts, variants, taps = [], logits, surprise }: ForwardRequest): VariantResult[] {
  const all = variants ?? prompts.map((_, prompt) => ({ prompt, interventions: [] }));
  return all.map(({ prompt, interventions }) => {
    const tokens = [...(prompts[prompt] ?? [])];
    const run = interventions.length === 0 ? plainRun(tokens) : forward(tokens, interventions);
    const result: VariantResult = {
      activations: taps.map(({ point, positions }) =>
        flat(resolvePositions(positions, tokens.length).map((at) => run.at(point, at))),
      ),
    };
    if (logits) {
      const rows = resolvePositions(logits.positions, tokens.length).map((at) => run.logits(at));
      result.logits = flat(rows.map((row) => logits.tokens?.map((token) => row[token] ?? 0) ?? row));
    }
    if (surprise) result.surprise = surpriseOf(tokens, run.logits, plainRun(tokens).logits);
    return result;
  });
}

const plainRuns = new Map<string, ReturnType<typeof forward>>();

/** What it does by itself, which is asked for again and again. */
function plainRun(tokens: readonly number[]): ReturnType<typeof forward> {
  const key = tokens.join(' ');
  const known = plainRuns.get(key) ?? forward(tokens, []);
  plainRuns.set(key, known);
  return known;
}

function forward(tokens: readonly number[], interventions: readonly Intervention[], length = tokens.length) {
  const seen = new Map<string, number[][]>();
  const hook = (point: HookPoint, rows: number[][]): number[][] => {
    const here = interventions.filter((one) => same(one.point, point));
    const change = (row: number[], at: number) =>
      here.filter((one) => covers(one.positions, at, length)).reduce((value, one) => apply(one, value), row);
    const changed = here.length === 0 ? rows : rows.map(change);
    seen.set(`${point.layer}.${point.place}`, changed);
    return changed;
  };
  let rows = tokens.map((token) => EMBEDDING[token] ?? []);
  for (const layer of [0, 1]) {
    rows = hook({ layer, place: 'resid_pre' }, rows);
    let subject = 0;
    const attention = rows.map((row) => {
      const before = subject;
      subject += product(row, NUMBER);
      return NUMBER.map((value) => (layer === 0 ? value * before : 0));
    });
    const mid = add(rows, hook({ layer, place: 'attn_out' }, attention));
    const mlp = mid.map((row) => {
      const read = layer === 1 ? Math.tanh(product(row, NUMBER)) : 0;
      return OUT.map((value) => 2 * value * read);
    });
    rows = hook({ layer, place: 'resid_post' }, add(mid, hook({ layer, place: 'mlp_out' }, mlp)));
  }
  const final = rows;
  const known = new Map<number, number[]>();
  return {
    at: (point: HookPoint, position: number) => seen.get(`${point.layer}.${point.place}`)?.[position] ?? [],
    logits(position: number) {
      const row = final[position] ?? [];
      const scale = Math.sqrt(product(row, row) / WIDTH + 1e-6);
      const logits = known.get(position) ?? UNEMBEDDING.map((weights) => product(weights, row) / scale);
      known.set(position, logits);
      return logits;
    },
  };
}

function apply(intervention: Intervention, row: number[]): number[] {
  if (intervention.kind === 'add') return row.map((value, i) => value + (intervention.vector[i] ?? 0));
  if (intervention.kind === 'set') return Array.from(intervention.vector);
  const along = Array.from(intervention.direction);
  const size = product(along, along);
  const share = product(row, along) / size;
  if (intervention.kind === 'project-out') return row.map((value, i) => value - share * (along[i] ?? 0));
  const source = Array.from(intervention.source);
  const wanted = product(source, along) / size;
  const [kept, given] = intervention.part === 'along' ? [row, wanted] : [source, share];
  const has = product(kept, along) / size;
  return kept.map((value, i) => value + (given - has) * (along[i] ?? 0));
}

function covers(positions: Positions, at: number, length: number): boolean {
  if (!('from' in positions)) return resolvePositions(positions, length).includes(at);
  return at >= (positions.from < 0 ? positions.from + length : positions.from);
}

function surpriseOf(tokens: number[], logits: (at: number) => number[], base: (at: number) => number[]) {
  const logs = (row: number[]) => {
    const total = Math.log(row.reduce((sum, value) => sum + Math.exp(value), 0));
    return row.map((value) => value - total);
  };
  const own = tokens.map((_, at) => logs(logits(at)));
  return {
    logProbabilities: Float32Array.from(tokens.slice(1), (token, at) => own[at]?.[token] ?? 0),
    divergences: Float32Array.from(tokens, (_, at) => {
      const other = logs(base(at));
      return other.reduce((sum, value, i) => sum + Math.exp(value) * (value - (own[at]?.[i] ?? 0)), 0);
    }),
  };
}

function orthogonal(vector: number[], to: number[]): number[] {
  const share = product(vector, to) / product(to, to);
  return vector.map((value, i) => value - share * (to[i] ?? 0));
}

function product(a: number[], b: number[]): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += (a[i] ?? 0) * (b[i] ?? 0);
  return sum;
}

function add(a: number[][], b: number[][]): number[][] {
  return a.map((row, at) => {
    const other = b[at] ?? [];
    return row.map((value, i) => value + (other[i] ?? 0));
  });
}

function same(a: HookPoint, b: HookPoint): boolean {
  return a.layer === b.layer && a.place === b.place;
}

function flat(rows: number[][]): Float32Array {
  const width = rows[0]?.length ?? 0;
  const all = new Float32Array(rows.length * width);
  for (const [index, row] of rows.entries()) all.set(row, index * width);
  return all;
}

function largest(values: number[]): number {
  return values.indexOf(Math.max(...values));
}
