/** Computes domains, round ticks and histograms, for figures and for the terminal. */

import { missing } from '../core/missing.ts';

export interface Domain {
  low: number;
  high: number;
}

/** All of the values, with a little air; never empty. */
export function domainOf(values: readonly number[], air = 0.04): Domain {
  let low = Number.POSITIVE_INFINITY;
  let high = Number.NEGATIVE_INFINITY;
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (low > high) return { low: 0, high: 1 };
  const room = high > low ? (high - low) * air : Math.max(Math.abs(low) * 0.1, 0.1);
  return { low: low - room, high: high + room };
}

/** Values but for a few at the ends that would press all others together. */
export function bulkOf(values: readonly number[], kept = 0.95): number[] {
  const sorted = values.filter(Number.isFinite).sort((a, b) => a - b);
  const cut = Math.floor((sorted.length * (1 - kept)) / 2);
  return sorted.slice(cut, sorted.length - cut);
}

export function linear(domain: Domain, from: number, to: number): (value: number) => number {
  const span = domain.high - domain.low;
  return (value) => from + ((value - domain.low) / span) * (to - from);
}

export function clamp(value: number, low: number, high: number): number {
  return Math.min(high, Math.max(low, value));
}

/** Steps between round values, in powers of ten. */
const STEPS = [1, 2, 5];
const LARGEST_STEP = 10;

/** Round values inside the domain, about as many as asked for. */
export function ticksOf({ low, high }: Domain, about: number): number[] {
  const raw = (high - low) / about;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * (STEPS.find((factor) => factor * power >= raw) ?? LARGEST_STEP);
  const ticks: number[] = [];
  for (let index = Math.ceil(low / step); index * step <= high + step * 1e-9; index++) {
    ticks.push(Number((index * step).toPrecision(12)));
  }
  return ticks;
}

/** How many values fall into each of equally wide parts of the domain; those outside count with the nearest. */
export function binned(values: readonly number[], { low, high }: Domain, bins: number): number[] {
  const counts = new Array<number>(bins).fill(0);
  for (const value of values) {
    if (Number.isNaN(value)) continue;
    const bin = clamp(Math.floor(((value - low) / (high - low)) * bins), 0, bins - 1);
    counts[bin] = (counts[bin] ?? missing('bin', bin)) + 1;
  }
  return counts;
}
