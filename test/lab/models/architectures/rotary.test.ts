import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { rotaryPositions } from '../../../../src/lab/models/architectures/rotary.ts';
import { largestDifference, parityFile } from '../../parity-reference.ts';

const Reference = z.object({
  rotated: z.number(),
  context: z.number(),
  rows: z.array(
    z.object({
      parameters: z.looseObject({ rope_type: z.string(), rope_theta: z.number() }),
      inverseFrequencies: z.array(z.number()),
      scale: z.number(),
      beyond: z.number().optional(),
      longFrequencies: z.array(z.number()).optional(),
    }),
  ),
});
const { rotated, context, rows } = Reference.parse(parityFile('rotary.json'));

describe.each(rows)(
  'rotary positions of the kind $parameters.rope_type',
  ({ parameters, inverseFrequencies, scale, beyond, longFrequencies }) => {
    it('are those of transformers', () => {
      const rotary = rotaryPositions({ max_position_embeddings: context, rope_parameters: parameters }, rotated);
      expect(rotary.scale).toBeCloseTo(scale, 12);
      expectRatioOf1(rotary.inverseFrequencies, inverseFrequencies);
      expect(rotary.long?.beyond).toBe(beyond);
      if (longFrequencies) expectRatioOf1(rotary.long?.inverseFrequencies ?? new Float64Array(), longFrequencies);
    });

    it('are the same as written by transformers before 5', () => {
      const { rope_theta, rope_type: type, ...rest } = parameters;
      const config = { max_position_embeddings: context, rope_theta, rope_scaling: { type, ...rest } };
      const written = { max_position_embeddings: context, rope_parameters: parameters };
      expect(rotaryPositions(config, rotated)).toEqual(rotaryPositions(written, rotated));
    });
  },
);

describe('rotary frequencies', () => {
  it('are unscaled where config.json names no scaling', () => {
    const { inverseFrequencies } = rotaryPositions({ max_position_embeddings: context }, 4);
    expect([...inverseFrequencies]).toEqual([1, Math.fround(0.01)]);
  });
});

function expectRatioOf1(ours: Float64Array, theirs: readonly number[]): void {
  const ratios = ours.map((frequency, i) => frequency / (theirs[i] ?? 0));
  expect(
    largestDifference(
      ratios,
      theirs.map(() => 1),
    ),
  ).toBeLessThan(1.3e-7);
}
