import { expect, it } from 'vitest';
import type { Sae, SaeActivation } from '../../../../src/lab/core/sae.ts';
import { encodeSaePlainly } from '../../../../src/lab/sae/encode.ts';
import { createRandom } from '../../../../src/lab/statistics/random.ts';
import { largestError } from './kernel-in-hand.ts';
import { openEngine } from './open-engine.ts';

it('the embedded engine encodes SAE features as the plain computation does, for every activation function', async () => {
  const engine = await openEngine('llama');
  const activations: SaeActivation[] = [
    { kind: 'relu' },
    { kind: 'jumprelu', threshold: new Float32Array(77).fill(0.4) },
    { kind: 'topk', k: 5 },
    { kind: 'groupmax', groups: 11 },
    { kind: 'gated', gateBias: numbers(77, 'gate'), scale: numbers(77, 'scale'), bias: numbers(77, 'bias') },
  ];
  for (const activation of activations) {
    const sae = randomSae(48, 77, activation);
    for (const count of [1, 9, 130]) {
      const rows = numbers(count * 48, `rows ${count}`);
      const encoded = await engine.encodeSae(sae, rows);
      expect(largestError(encoded, encodeSaePlainly(sae, rows)), activation.kind).toBeLessThan(2e-6);
    }
  }
});

it('the embedded engine encodes with an SAE that was evicted', async () => {
  const engine = await openEngine('llama');
  const small = randomSae(48, 8, { kind: 'relu' });
  const rows = numbers(48, 'rows');
  const expected = await engine.encodeSae(small, rows);
  // Two that do not fit together with it.
  for (let i = 0; i < 2; i++) await engine.encodeSae(largeSae(48, 700_000), rows);
  expect(await engine.encodeSae(small, rows)).toEqual(expected);
});

it('the embedded engine refuses an SAE of another width, and numbers that are no rows', async () => {
  const engine = await openEngine('llama');
  await expect(engine.encodeSae(randomSae(47, 8, { kind: 'relu' }), numbers(47, 'rows'))).rejects.toThrow(
    'The SAE is 47 wide, and the model 48',
  );
  await expect(engine.encodeSae(randomSae(48, 8, { kind: 'relu' }), numbers(50, 'rows'))).rejects.toThrow(
    '50 numbers are no rows of 48',
  );
});

function randomSae(width: number, features: number, activation: SaeActivation): Sae {
  return {
    id: 'random',
    source: 'nowhere',
    format: 'random',
    width,
    features,
    encoder: numbers(width * features, 'encoder'),
    encoderBias: numbers(features, 'encoder bias'),
    decoder: numbers(width * features, 'decoder'),
    decoderBias: numbers(width, 'decoder bias'),
    activation,
    subtractsDecoderBias: true,
    normalization: 'layer-norm',
  };
}

/** All of its weights are 0, which is quicker to make. */
function largeSae(width: number, features: number): Sae {
  return {
    ...randomSae(width, 1, { kind: 'relu' }),
    features,
    encoder: new Float32Array(width * features),
    encoderBias: new Float32Array(features),
  };
}

function numbers(count: number, name: string): Float32Array {
  const random = createRandom(1, name);
  return Float32Array.from({ length: count }, () => random.normal());
}
