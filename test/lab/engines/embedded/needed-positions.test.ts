import { describe, expect, it } from 'vitest';
import type {
  Engine,
  ForwardRequest,
  Intervention,
  Positions,
  VariantResult,
} from '../../../../src/lab/core/engine.ts';
import { PARITY_MODELS } from '../../parity-reference.ts';
import { openEngine, randomPrompts, randomVector } from './open-engine.ts';

/** The last position of the first, and what is left of a batch, are different rows in each. */
const LENGTHS = [6, 1, 9, 17, 8];
const FROM_START: Positions = { from: 0 };

describe.each(PARITY_MODELS)('the embedded engine with the model %s', (name) => {
  it('gives the same bits behind the last layer where only some positions are read as where all are', async () => {
    const sparing = await openEngine(name);
    const thorough = await openEngine(name);
    const prompts = randomPrompts(sparing, LENGTHS);
    const variants = prompts.flatMap((_, prompt) =>
      interventionsOf(sparing).map((interventions) => ({ prompt, interventions })),
    );
    for (const position of [-1, 0]) {
      const some = await sparing.run({ ...requestOf(sparing, [position]), prompts, variants });
      const all = await thorough.run({ ...requestOf(thorough, FROM_START), prompts, variants });
      variants.forEach(({ prompt }, index) => {
        const length = LENGTHS[prompt] ?? 0;
        expect(some[index], `variant ${index} at ${position}`).toEqual(rowOf(all[index], position, length));
      });
    }
  });

  it('reads all positions of a prompt of which only the last was read before', async () => {
    const engine = await openEngine(name);
    const fresh = await openEngine(name);
    const prompts = randomPrompts(engine, LENGTHS);
    await engine.run({ prompts, logits: { positions: [-1] } });
    const everything: ForwardRequest = { ...requestOf(engine, FROM_START), prompts, surprise: true };
    expect(await engine.run(everything)).toEqual(await fresh.run(everything));
  });
});

function requestOf(engine: Engine, positions: Positions): Omit<ForwardRequest, 'prompts'> {
  const last = engine.describe().layers - 1;
  const places = ['resid_pre', 'z', 'attn_out', 'mlp_out', 'resid_post'] as const;
  return { taps: places.map((place) => ({ point: { layer: last, place }, positions })), logits: { positions } };
}

/** None, and some in the first and in the last layer, at a position that may be before the one that is read. */
function interventionsOf(engine: Engine): Intervention[][] {
  const last = engine.describe().layers - 1;
  const vector = randomVector(engine, 2, 5);
  const points = [
    { layer: 0, place: 'resid_pre' },
    { layer: last, place: 'resid_pre' },
    { layer: last, place: 'attn_out' },
    { layer: last, place: 'resid_post' },
  ] as const;
  const added = points.map((point): Intervention[] => [{ kind: 'add', point, positions: [0], vector }]);
  return [[], ...added];
}

/** What the same request answers for one position, of what it answers for all. */
function rowOf(result: VariantResult | undefined, position: number, length: number): VariantResult {
  const row = (position + length) % length;
  const take = (values: Float32Array): Float32Array => {
    const width = values.length / length;
    return values.slice(row * width, (row + 1) * width);
  };
  return { activations: (result?.activations ?? []).map(take), logits: take(result?.logits ?? new Float32Array()) };
}
