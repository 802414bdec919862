import { Hono } from 'hono';
import { describe, expect, it } from 'vitest';
import { explainConfig, readConfig } from '../../../src/config.ts';
import { CuvetteError } from '../../../src/errors.ts';
import { createLog } from '../../../src/log.ts';
import { policyOf } from '../../../src/sandbox/policy.ts';
import type { Principal, RestEnv } from '../../../src/surfaces/caller.ts';
import { createMetrics } from '../../../src/surfaces/rest/metrics.ts';
import { operateRoutes } from '../../../src/surfaces/rest/operate.ts';
import { onError } from '../../../src/surfaces/rest/problem.ts';
import { jsonOf } from '../workbench/open-workbench.ts';

const SETTINGS = { apiKey: 'the-secret-key', pathSecret: 'the-secret-path-of-all', maxSessions: '7' };

function open(kind: Principal['kind'] = 'key') {
  const metrics = createMetrics();
  let time = 0;
  let examined = 0;
  const app = new Hono<RestEnv>();
  app.onError(onError(createLog('silent')));
  app.use(metrics.middleware, async (c, next) => {
    c.set('principal', { id: 'someone', kind });
    await next();
  });
  app.get('/refused', () => {
    throw new CuvetteError('too_large', 'Too large.');
  });
  app.route(
    '/',
    operateRoutes({
      metrics,
      shared: { size: 2, evicted: 1 },
      mostSessions: 7,
      sandbox: { description: 'none', policy: policyOf(readConfig({}, {})) },
      settings: explainConfig(SETTINGS, {}),
      async *examine() {
        examined += 1;
        yield { name: 'uv', state: 'missing', detail: 'not installed.', advice: 'pip install uv' };
      },
      now: () => time,
    }),
  );
  return {
    app,
    metrics,
    operate: async () => jsonOf(await app.request('/operate')),
    later: (ms: number) => {
      time += ms;
    },
    timesExamined: () => examined,
  };
}

describe('the view of who runs the service', () => {
  it('has what callers did, by surface and outcome, the limits that they hit and what they were refused', async () => {
    const { app, metrics, operate } = open();
    const timeout = { code: 'timeout' as const, message: 'Too long.' };
    metrics.execution({ interpreter: 'builtin', outcome: 'ok', wall: 0.02, origin: 'page', reason: null }, 'ada');
    metrics.execution({ interpreter: 'bash', outcome: 'timeout', wall: 2, origin: 'agent', reason: timeout }, 'ada');
    const refusal = new CuvetteError('rate_limited', 'Too many.');
    metrics.refused(refusal, 'ada');
    metrics.refused(refusal, 'ada');
    await app.request('/refused');
    const { metrics: told } = await operate();
    expect(told).toMatchObject({
      sessions: { live: 2, evicted: 1, most: 7 },
      executions: [
        { principal: 'ada', surface: 'page', outcome: 'ok', total: 1 },
        { principal: 'ada', surface: 'agent', outcome: 'timeout', total: 1 },
      ],
      limits: [{ principal: 'ada', limit: 'timeout', total: 1 }],
      refusals: [
        { principal: 'ada', code: 'rate_limited', total: 1 },
        { principal: 'someone', code: 'too_large', total: 1 },
      ],
      requests: [{ route: '/refused', status: 413, total: 1 }],
      bytes: { uploaded: 0, downloaded: 0 },
    });
    expect(told.latencies[0]).toMatchObject({ surface: 'page', seconds: 0.02, total: 1 });
    expect(told.latencies[0].buckets).toContainEqual({ le: 0.025, total: 1 });
    expect(told.latencies[0].buckets.at(-1)).toEqual({ le: null, total: 1 });
  });

  it('counts a hundred callers by name, and others together', async () => {
    const { metrics, operate } = open();
    for (let n = 0; n < 150; n++)
      metrics.execution({ interpreter: 'builtin', outcome: 'ok', wall: 0.02, origin: 'rest' }, `user ${n}`);
    const { executions } = (await operate()).metrics;
    expect(executions).toHaveLength(101);
    expect(executions.at(-1)).toMatchObject({ principal: 'other', total: 50 });
    expect(metrics.render().match(/^cuvette_calls_total/gm)).toHaveLength(101);
  });

  it('has the settings without the secrets, and findings that are not made anew for every look', async () => {
    const { operate, later, timesExamined } = open();
    const answer = await operate();
    expect(JSON.stringify(answer)).not.toContain('the-secret');
    expect(answer.settings).toContainEqual(expect.objectContaining({ setting: 'apiKey', value: '(set)' }));
    expect(answer.doctor).toEqual([
      { name: 'uv', state: 'missing', detail: 'not installed.', advice: 'pip install uv' },
    ]);
    await operate();
    expect(timesExamined()).toBe(1);
    later(61_000);
    await operate();
    expect(timesExamined()).toBe(2);
  });

  it.each(['jwt', 'path'] as const)('is refused to a caller by %s', async (kind) => {
    const response = await open(kind).app.request('/operate');
    expect([response.status, await response.json()]).toMatchObject([403, { code: 'forbidden' }]);
  });

  it.each(['key', 'open'] as const)('is for a caller by %s', async (kind) => {
    expect((await open(kind).app.request('/operate')).status).toBe(200);
  });
});
