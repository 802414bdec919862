import { describe, expect, it } from 'vitest';
import { narrowToBfloats, narrowToHalves, widenBfloats, widenHalves } from '../../../src/lab/formats/float16.ts';

describe('halves', () => {
  it('are converted to floats', () => {
    const halves = [0x0000, 0x8000, 0x3c00, 0xc000, 0x3555, 0x0001, 0x03ff, 0x0400, 0x7bff, 0x7c00, 0xfc00, 0x7e00];
    const values = [0, -0, 1, -2, 0.333251953125, 2 ** -24, 1023 * 2 ** -24, 2 ** -14, 65504, Infinity, -Infinity, NaN];
    const widened = new Float32Array(halves.length);
    widenHalves(Uint16Array.from(halves), widened);
    expect([...widened]).toEqual(values);
  });

  it('survive the conversion to floats and back, all of them', () => {
    const all = Uint16Array.from({ length: 0x10000 }, (_, half) => half).filter((half) => (half & 0x7fff) <= 0x7c00);
    const widened = new Float32Array(all.length);
    widenHalves(all, widened);
    expect(narrowToHalves(widened)).toEqual(all);
  });

  it('are rounded to nearest, ties to even', () => {
    const near = (value: number) => narrowToHalves(Float32Array.of(value))[0];
    expect(near(1 + 2 ** -11)).toBe(0x3c00);
    expect(near(1 + 3 * 2 ** -11)).toBe(0x3c02);
    expect(near(1 + 2 ** -11 + 2 ** -20)).toBe(0x3c01);
    expect(near(65519.99)).toBe(0x7bff);
    expect(near(65520)).toBe(0x7c00);
    expect(near(2 ** -25)).toBe(0);
    expect(near(2 ** -25 * 1.01)).toBe(1);
    expect(near(-(2 ** -14) + 2 ** -25)).toBe(0x8400);
    expect(near(1e-45)).toBe(0);
    expect(near(Number.NaN)).toBe(0x7e00);
  });
});

describe('bfloat16', () => {
  it('is converted to floats', () => {
    const widened = new Float32Array(4);
    widenBfloats(Uint16Array.of(0x3f80, 0xc040, 0x7f80, 0x0001), widened);
    expect([...widened]).toEqual([1, -3, Number.POSITIVE_INFINITY, 2 ** -133]);
  });

  it('is rounded to nearest, ties to even', () => {
    const near = (value: number) => narrowToBfloats(Float32Array.of(value))[0];
    expect(near(1 + 2 ** -8)).toBe(0x3f80);
    expect(near(1 + 3 * 2 ** -8)).toBe(0x3f82);
    expect(near(1 + 2 ** -8 + 2 ** -20)).toBe(0x3f81);
    expect(near(3.4e38)).toBe(0x7f80);
    expect(near(Number.NaN) ?? 0).toBeGreaterThan(0x7f80);
  });
});
