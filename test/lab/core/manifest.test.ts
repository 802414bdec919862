import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonicalJson, createManifest, hashOf } from '../../../src/lab/core/manifest.ts';

const experiment = {
  tool: 'steer',
  inputs: { b: 1, a: [1, 2] },
  outputs: { score: 0.5 },
  config: { seed: 1, weights: 'w' },
};

describe('a manifest', () => {
  test('has the same hash at another time and in another call, and another audit hash', () => {
    const first = createManifest(experiment, { time: '2026-01-01T00:00:00Z', id: 'x' });
    const second = createManifest(experiment, { time: '2026-01-02T00:00:00Z', id: 'y' });
    expect(second.manifest_sha256).toBe(first.manifest_sha256);
    expect(second.audit_sha256).not.toBe(first.audit_sha256);
  });

  test.each([
    { tool: 'capture_acts' },
    { inputs: { b: 2, a: [1, 2] } },
    { outputs: { score: 0.5000001 } },
    { config: { seed: 2, weights: 'w' } },
    { config: { seed: 1, weights: 'v' } },
  ])('has another hash with %o', (change) => {
    const call = { time: '', id: '' };
    expect(createManifest({ ...experiment, ...change }, call).manifest_sha256).not.toBe(
      createManifest(experiment, call).manifest_sha256,
    );
  });
});

describe('canonical JSON', () => {
  test('does not depend on the order of keys', () => {
    expect(canonicalJson({ b: { d: 1, c: 2 }, a: [3, { f: 1, e: 2 }] })).toBe(
      '{"a":[3,{"e":2,"f":1}],"b":{"c":2,"d":1}}',
    );
  });

  test('stays JSON of an equal value', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(JSON.parse(canonicalJson(value))).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  test('tells different values apart', () => {
    expect(hashOf([1, 2])).not.toBe(hashOf([12]));
    expect(hashOf(null)).not.toBe(hashOf('null'));
  });
});
