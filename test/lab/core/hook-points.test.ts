import { describe, expect, it } from 'vitest';
import { formatHookPoint, parseHookPoint } from '../../../src/lab/core/hook-points.ts';

describe('a hook point', () => {
  it.each([
    ['blocks.3.hook_resid_pre', { layer: 3, place: 'resid_pre' }],
    ['blocks.0.hook_attn_out', { layer: 0, place: 'attn_out' }],
    ['blocks.11.hook_mlp_out', { layer: 11, place: 'mlp_out' }],
    ['blocks.5.hook_resid_post', { layer: 5, place: 'resid_post' }],
  ])('named %s is found, and gets the same name again', (name, point) => {
    expect(parseHookPoint(name, 12)).toEqual(point);
    expect(formatHookPoint(parseHookPoint(name, 12))).toBe(name);
  });

  it.each([
    ['blocks.3.hook_in', 'blocks.3.hook_resid_pre'],
    ['blocks.3.hook_out', 'blocks.3.hook_resid_post'],
    ['blocks.3.attn.hook_out', 'blocks.3.hook_attn_out'],
    ['blocks.3.mlp.hook_out', 'blocks.3.hook_mlp_out'],
    [4, 'blocks.4.hook_resid_post'],
    ['4', 'blocks.4.hook_resid_post'],
    [-1, 'blocks.11.hook_resid_post'],
    [-12, 'blocks.0.hook_resid_post'],
  ])('given as %s is %s', (given, name) => {
    expect(formatHookPoint(parseHookPoint(given, 12))).toBe(name);
  });

  it.each([12, -13, 'blocks.12.hook_resid_post'])('in layer %s of 12 is refused', (given) => {
    expect(() => parseHookPoint(given, 12)).toThrow('The model has layers 0 to 11.');
  });

  it.each([
    1.5,
    '',
    'resid_post',
    'blocks.1.hook_resid_mid',
    'blocks.1.attn.hook_z',
    'blocks.1.toString',
    'blocks.x.hook_in',
  ])('given as %s is refused, with the names that exist', (given) => {
    expect(() => parseHookPoint(given, 12)).toThrow('blocks.N.hook_resid_post');
  });

  it('may be in any layer if the number of layers is unknown', () => {
    expect(parseHookPoint('blocks.99.hook_mlp_out')).toEqual({ layer: 99, place: 'mlp_out' });
    expect(() => parseHookPoint(-1)).toThrow('Layers count from 0.');
  });
});
