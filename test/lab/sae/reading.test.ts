/** Tests that an SAE which was misread is noticed by what it computes, and that one which was read rightly is not suspected. */

import { describe, expect, test } from 'vitest';
import { encodeSaePlainly } from '../../../src/lab/sae/encode.ts';
import { checkSae } from '../../../src/lab/sae/fit.ts';
import { measureReading, misreadingOf } from '../../../src/lab/sae/reading.ts';
import { misreadings, openTrainedSaes, TRAINED_KINDS } from './trained-saes.ts';

describe.each(['demo', 'planted'] as const)('of SAEs trained on %s activations', (name) => {
  const { rows, saes } = openTrainedSaes(name);
  const model = { id: name, width: saes.relu.width, layers: 4 };

  test.each(TRAINED_KINDS)(
    'one of kind %s passes the fit check, also on few rows and on other halves of them',
    (kind) => {
      const sae = saes[kind];
      expect(checkSae(sae, model, rows).fvu).toBeLessThan(0.5);
      for (const count of [24, 48, 96]) {
        for (let start = 0; start + count <= rows.length / sae.width; start += count) {
          const some = rows.subarray(start * sae.width, (start + count) * sae.width);
          const reading = measureReading(sae, some, encodeSaePlainly(sae, some), some);
          expect(misreadingOf(sae, reading), `${count} rows from ${start}`).toBeUndefined();
        }
      }
    },
  );

  describe.each(TRAINED_KINDS)('one of kind %s is refused', (kind) => {
    test.each(misreadings(kind, saes[kind]))('%s', (_, sae) => {
      expect(() => checkSae(sae, model, rows)).toThrow(/is not read as it was trained|leaves .* of the variance/);
      expect(() => checkSae(sae, model, rows, { force: true })).not.toThrow();
    });
  });
});

test('an SAE with far more active features than its files say is refused with both numbers', () => {
  const { rows, saes } = openTrainedSaes('demo');
  const model = { id: 'demo', width: saes.topk.width, layers: 4 };
  expect(() => checkSae({ ...saes.topk, expectedL0: 1.5 }, model, rows)).toThrow(
    /8\.0 features are active on average, and its files say 1\.5/,
  );
  expect(checkSae({ ...saes.topk, expectedL0: 8 }, model, rows).l0).toBeCloseTo(8, 0);
});
