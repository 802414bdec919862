/** `GET /operate` tells who runs the service how it is used, how code is confined, what it depends on, and its settings without the secrets. */

import { createRoute, OpenAPIHono, z } from '@hono/zod-openapi';
import type { SettingRow } from '../../config.ts';
import { CuvetteError } from '../../errors.ts';
import type { Policy } from '../../sandbox/policy.ts';
import type { SharedSessions } from '../../sessions/shared-sessions.ts';
import { VERSION } from '../../version.ts';
import type { Principal, RestEnv } from '../caller.ts';
import type { Metrics } from './metrics.ts';
import { refuseInvalid } from './problem.ts';
import type { Sample } from './prometheus.ts';

const finding = z.object({
  name: z.string(),
  state: z.enum(['works', 'missing', 'broken']),
  detail: z.string(),
  advice: z.string().nullable(),
});

export interface OperateOptions {
  metrics: Metrics;
  shared: Pick<SharedSessions, 'size' | 'evicted'>;
  mostSessions: number;
  /** How code is confined: a sentence, and what it may do. */
  sandbox: { description: string; policy: Policy };
  settings: SettingRow[];
  /** Examines what the service depends on, without running code. */
  examine(): AsyncIterable<z.infer<typeof finding>>;
  now?(): number;
}

/** Milliseconds for which findings are told again: to examine starts processes. */
const KEEP_FINDINGS = 60_000;

const total = z.number();
const principal = z.string().openapi({ description: 'Whose; `other` beyond the first hundred.' });

const answer = z
  .object({
    version: z.string(),
    uptime_seconds: z.number(),
    metrics: z.object({
      sessions: z.object({ live: z.number(), evicted: z.number(), most: z.number() }),
      executions: z.array(
        z.object({
          principal,
          surface: z.string().openapi({ description: 'agent, shell, page, rest.' }),
          outcome: z.string(),
          total,
        }),
      ),
      latencies: z
        .array(
          z.object({
            surface: z.string(),
            buckets: z.array(z.object({ le: z.number().nullable(), total })),
            seconds: z.number(),
            total,
          }),
        )
        .openapi({ description: 'Executions that took at most `le` seconds; null: all.' }),
      limits: z.array(z.object({ principal, limit: z.string(), total })),
      refusals: z.array(z.object({ principal, code: z.string(), total })),
      requests: z.array(z.object({ route: z.string(), status: z.number(), total })),
      memory: z.object({ resident: z.number(), heap: z.number() }).openapi({ description: 'Bytes, of the service.' }),
      bytes: z.object({ uploaded: z.number(), downloaded: z.number() }),
    }),
    sandbox: z.object({
      description: z.string(),
      network: z.string(),
      limits: z.record(z.string(), z.number()).openapi({ description: 'For each session; 0: none.' }),
    }),
    doctor: z.array(finding),
    settings: z.array(
      z.object({
        setting: z.string(),
        value: z.union([z.string(), z.number(), z.boolean(), z.array(z.string()), z.null()]),
        source: z.string(),
        flag: z.string(),
        variables: z.array(z.string()),
      }),
    ),
  })
  .openapi('Operation');

const route = createRoute({
  method: 'get',
  path: '/operate',
  operationId: 'getOperation',
  summary: 'How the service is used and set up, for who runs it',
  responses: {
    200: { description: 'Counted since it started.', content: { 'application/json': { schema: answer } } },
    403: { description: 'For the holder of the key, or for programs of this machine where there is none.' },
  },
});

export function operateRoutes(options: OperateOptions): OpenAPIHono<RestEnv> {
  const app = new OpenAPIHono<RestEnv>({ defaultHook: refuseInvalid });
  const { metrics, shared, mostSessions, settings, now = Date.now } = options;
  const { description, policy } = options.sandbox;
  const { openFiles: open_files, fileCount: file_count, ...limits } = policy.limits;
  let found: { at: number; findings: Promise<z.infer<typeof finding>[]> } | undefined;

  function findings(): Promise<z.infer<typeof finding>[]> {
    if (!found || now() - found.at > KEEP_FINDINGS) found = { at: now(), findings: collect(options.examine()) };
    return found.findings;
  }

  app.openapi(route, async (c) => {
    checkAdmin(c.get('principal'));
    const sessions = { live: shared.size, evicted: shared.evicted, most: mostSessions };
    const { rss, heapUsed } = process.memoryUsage();
    const body = {
      version: VERSION,
      uptime_seconds: Math.round(process.uptime()),
      metrics: { sessions, ...counted(metrics.read()), memory: { resident: rss, heap: heapUsed } },
      sandbox: { description, network: policy.network, limits: { ...limits, open_files, file_count } },
      doctor: await findings(),
      settings,
    };
    return c.json(body, 200);
  });
  return app;
}

/** Users of a token, or of a path that they share, are not who runs the service. */
function checkAdmin({ kind }: Principal): void {
  if (kind === 'key' || kind === 'open') return;
  throw new CuvetteError(
    'forbidden',
    'This is for who runs the service: send the key of --api-key (CUVETTE_API_KEY) in the header x-api-key.',
  );
}

function counted(all: Record<string, Sample[]>) {
  const of = (name: string) => all[name] ?? [];
  const text = ({ labels }: Sample, label: string) => String(labels[label]);
  const sum = (name: string) => of(name).reduce((before, { value }) => before + value, 0);
  return {
    executions: of('cuvette_calls_total').map((one) => ({
      ...{ principal: text(one, 'principal'), surface: text(one, 'surface'), outcome: text(one, 'outcome') },
      total: one.value,
    })),
    latencies: latenciesOf(of('cuvette_call_seconds')),
    limits: of('cuvette_limits_hit_total').map((one) => ({
      ...{ principal: text(one, 'principal'), limit: text(one, 'limit') },
      total: one.value,
    })),
    refusals: of('cuvette_refusals_total').map((one) => ({
      ...{ principal: text(one, 'principal'), code: text(one, 'code') },
      total: one.value,
    })),
    requests: of('cuvette_requests_total').map((one) => ({
      ...{ route: text(one, 'route'), status: Number(one.labels.status) },
      total: one.value,
    })),
    bytes: { uploaded: sum('cuvette_uploads_bytes_total'), downloaded: sum('cuvette_downloads_bytes_total') },
  };
}

function latenciesOf(samples: Sample[]) {
  const surfaces = [...new Set(samples.map(({ labels }) => String(labels.surface)))];
  return surfaces.map((surface) => {
    const own = samples.filter(({ labels }) => labels.surface === surface);
    const value = (suffix: string) => own.find((one) => one.suffix === suffix)?.value ?? 0;
    const buckets = own
      .filter(({ suffix }) => suffix === '_bucket')
      .map(({ labels, value: total }) => ({ le: labels.le === '+Inf' ? null : Number(labels.le), total }));
    return { surface, buckets, seconds: value('_sum'), total: value('_count') };
  });
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}
