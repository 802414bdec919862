import { describe, expect, it } from 'vitest';
import { formatHookPoint, parseHookPoint, widthAt } from '../../../src/lab/core/hook-points.ts';

/** Its heads are narrower together than the model. */
const MODEL = { width: 12, heads: 2, headWidth: 4 };

describe('a hook point', () => {
  it.each([
    ['blocks.3.hook_resid_pre', { layer: 3, place: 'resid_pre' }],
    ['blocks.0.hook_attn_out', { layer: 0, place: 'attn_out' }],
    ['blocks.11.hook_mlp_out', { layer: 11, place: 'mlp_out' }],
    ['blocks.5.hook_resid_post', { layer: 5, place: 'resid_post' }],
    ['blocks.2.attn.hook_z', { layer: 2, place: 'z' }],
    ['blocks.2.attn.hook_z[7]', { layer: 2, place: 'z', head: 7 }],
    ['blocks.2.attn.hook_pattern[0]', { layer: 2, place: 'pattern', head: 0 }],
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
    'blocks.1.attn.hook_q',
    'blocks.1.attn.hook_z[-1]',
    'blocks.1.hook_mlp_out[2]',
    'blocks.1.toString',
    'blocks.x.hook_in',
  ])('given as %s is refused, with the names that exist', (given) => {
    expect(() => parseHookPoint(given, 12)).toThrow('blocks.N.hook_resid_post');
  });

  it.each([
    ['blocks.0.hook_attn_out', 12],
    ['blocks.0.attn.hook_z', 8],
    ['blocks.0.attn.hook_z[1]', 4],
    ['blocks.0.attn.hook_pattern[1]', 9],
  ])('named %s is %i wide in a prompt of 9 tokens', (name, width) => {
    expect(widthAt(MODEL, parseHookPoint(name), 9)).toBe(width);
  });

  it('is refused where the model has no such head, or a pattern has none, or would need a direction', () => {
    const width = (name: string, tokens?: number) => widthAt(MODEL, parseHookPoint(name), tokens);
    expect(() => width('blocks.0.attn.hook_z[2]')).toThrow('There is no head 2. The model has heads 0 to 1');
    expect(() => width('blocks.0.attn.hook_pattern', 9)).toThrow('blocks.0.attn.hook_pattern[0]');
    expect(() => width('blocks.0.attn.hook_pattern[0]')).toThrow('has no directions');
    expect(() => widthAt({ width: 12, heads: 2 }, { layer: 0, place: 'z' })).toThrow('cannot be told apart');
  });

  it('may be in any layer if the number of layers is unknown', () => {
    expect(parseHookPoint('blocks.99.hook_mlp_out')).toEqual({ layer: 99, place: 'mlp_out' });
    expect(() => parseHookPoint(-1)).toThrow('Layers count from 0.');
  });
});
