/** Tests that no arguments of a caller, however odd, lead to an internal error. */

import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { CuvetteError } from '../../../src/errors.ts';
import { PRIMITIVES } from '../../../src/lab/primitives/table.ts';
import { NUMBER } from '../toy-engine.ts';
import { toyLab } from '../toy-lab.ts';

const odd = fc.oneof(
  fc.constantFrom(
    -1,
    0,
    1,
    2,
    1e9,
    -0.5,
    1e-30,
    1e300,
    '',
    ' ',
    'the cats',
    '0',
    '-1',
    'number',
    'demo',
    '../..',
    'blocks.0.hook_mlp_out',
  ),
  fc.constantFrom(
    [],
    [0],
    [0, 1],
    ['the cats', 'the cat'],
    [' '],
    [NUMBER],
    NUMBER,
    NUMBER.slice(1),
    [1e300],
    ['end_question:-9'],
    null,
    {},
    true,
  ),
  fc.string(),
  fc.jsonValue(),
);

test.each(PRIMITIVES.map((primitive) => [primitive.name, primitive] as const))(
  'odd arguments of %s give an answer or a clear error, and nothing else',
  async (name, primitive) => {
    const { call, capturePairs } = toyLab();
    const capture_id = await capturePairs(4, { positions: [-1, -2] });
    await call('load_probe', { probe_id: 'number', direction: NUMBER, layer: 0 });
    // Right values for some, so that the others are reached.
    const right: Record<string, unknown> = {
      capture_id,
      probe_id: 'number',
      direction_id: 'number',
      sae_id: './none',
      prompt: 'the red cats',
      layer: 0,
      layers: [0],
      position: -1,
      alpha: 1,
      fit: 'logistic',
      n_random: 2,
      max_new_tokens: 1,
    };
    const keys = Object.keys(primitive.input.shape);
    const args = fc.record(Object.fromEntries(keys.map((key) => [key, fc.option(odd, { nil: undefined })])), {
      requiredKeys: [],
    });
    const kept = fc.subarray(keys);
    await fc.assert(
      fc.asyncProperty(args, kept, async (given, proper) => {
        const asked = {
          ...given,
          ...Object.fromEntries(proper.filter((key) => key in right).map((key) => [key, right[key]])),
        };
        try {
          primitive.output.strict().parse(JSON.parse(JSON.stringify(await call(name, asked))));
        } catch (error) {
          expect(error).toBeInstanceOf(CuvetteError);
          expect((error as CuvetteError).code, (error as CuvetteError).message).not.toBe('internal');
        }
      }),
      { numRuns: 150 },
    );
  },
);
