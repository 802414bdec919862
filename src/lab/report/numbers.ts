/** Formats numbers for reports. */

import type { Share } from '../causality/common-evidence.ts';
import type { Interval } from '../statistics/bootstrap.ts';

const MINUS = '\u2212';

/** Two decimals, and a third where two would show little of it. */
export function formatNumber(value: number): string {
  const size = Math.abs(value);
  return decimals(value, size < 0.01 && size > 0 ? 3 : 2);
}

/** Two decimals: for pictures, where there is little room. */
export function formatShort(value: number): string {
  return decimals(value, 2);
}

export function formatCount(value: number): string {
  return value.toLocaleString('en').replace('-', MINUS);
}

export function formatPercent(rate: number): string {
  const value = rate * 100;
  return `${signed(value.toFixed(value !== 0 && Math.abs(value) < 10 ? 1 : 0))} %`;
}

/** Two significant digits: a p-value from resampling has no more. */
export function formatP(p: number): string {
  if (p >= 0.0995) return p.toFixed(2);
  return p < 1e-6 ? p.toExponential(0) : String(Number(p.toPrecision(2)));
}

export function formatInterval({ low, high }: Interval): string {
  return `[${formatNumber(low)}, ${formatNumber(high)}]`;
}

export function formatShortInterval({ low, high }: Interval): string {
  return `[${formatShort(low)}, ${formatShort(high)}]`;
}

export function formatShare({ count, of, rate, interval }: Share): string {
  return `${formatCount(count)} of ${formatCount(of)} (${formatPercent(rate)}; 95 % interval ${formatPercent(interval.low)} to ${formatPercent(interval.high)})`;
}

function decimals(value: number, digits: number): string {
  const size = Math.abs(value);
  if (!Number.isFinite(value)) return 'not a number';
  if (size >= 1e6) return signed(value.toExponential(1));
  return signed(size >= 100 ? String(Math.round(value)) : value.toFixed(digits));
}

/** With a real minus sign, and none before zero. */
function signed(text: string): string {
  return text.replaceAll('-', MINUS).replace(/^\u2212(0(\.0*)?)$/, '$1');
}
