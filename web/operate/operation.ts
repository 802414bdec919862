/** Defines what `GET /operate` answers, and sums it up. */

import * as z from 'zod/mini';
import { formatSeconds } from '../shell/format.ts';

const total = z.number();
const latency = z.object({
  surface: z.string(),
  buckets: z.array(z.object({ le: z.nullable(z.number()), total })),
  seconds: z.number(),
  total,
});

export const operationSchema = z.object({
  version: z.string(),
  uptime_seconds: z.number(),
  metrics: z.object({
    sessions: z.object({ live: z.number(), evicted: z.number(), most: z.number() }),
    executions: z.array(z.object({ principal: z.string(), surface: z.string(), outcome: z.string(), total })),
    latencies: z.array(latency),
    limits: z.array(z.object({ principal: z.string(), limit: z.string(), total })),
    refusals: z.array(z.object({ principal: z.string(), code: z.string(), total })),
    memory: z.object({ resident: z.number(), heap: z.number() }),
  }),
  sandbox: z.object({ description: z.string(), network: z.string(), limits: z.record(z.string(), z.number()) }),
  doctor: z.array(
    z.object({ name: z.string(), state: z.string(), detail: z.string(), advice: z.nullable(z.string()) }),
  ),
  settings: z.array(
    z.object({
      setting: z.string(),
      value: z.union([z.string(), z.number(), z.boolean(), z.array(z.string()), z.null()]),
      source: z.string(),
      flag: z.string(),
    }),
  ),
});
export type Operation = z.infer<typeof operationSchema>;

/** Sums by a name, the largest first. */
export function totals<Row extends { total: number }>(
  rows: readonly Row[],
  nameOf: (row: Row) => string,
): Map<string, number> {
  const sums = new Map<string, number>();
  for (const row of rows) sums.set(nameOf(row), (sums.get(nameOf(row)) ?? 0) + row.total);
  return new Map([...sums].sort(([, a], [, b]) => b - a));
}

/** The smallest bound within which this share of executions ended; buckets count all up to their bound. */
export function quantile({ buckets, total: all }: z.infer<typeof latency>, share: number): string {
  const found = buckets.find((bucket) => bucket.total >= all * share);
  if (!found || all === 0) return '–';
  if (found.le !== null) return formatSeconds(found.le);
  const last = buckets.findLast(({ le }) => le !== null)?.le;
  return last === undefined || last === null ? '–' : `more than ${formatSeconds(last)}`;
}
