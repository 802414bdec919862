import { Hono } from 'hono';
import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { CuvetteError } from '../../../src/errors.ts';
import type { RestEnv } from '../../../src/surfaces/caller.ts';
import { createMetrics } from '../../../src/surfaces/rest/metrics.ts';
import { onError } from '../../../src/surfaces/rest/problem.ts';
import { createRegistry } from '../../../src/surfaces/rest/prometheus.ts';

const lines = (text: string, name: string) => text.split('\n').filter((line) => line.startsWith(name));

describe('the metrics', () => {
  it('count requests by the pattern of their route, refused ones too', async () => {
    const metrics = createMetrics();
    const app = new Hono<RestEnv>();
    const files = new Hono<RestEnv>();
    app.onError(onError(pino({ level: 'silent' })));
    app.use(metrics.middleware);
    app.use('/v1/*', async (c, next) => {
      if (c.req.header('x-api-key')) return next();
      throw new CuvetteError('unauthorized', 'No.');
    });
    files.get('/download/:session/:file', (c) => c.text('bytes'));
    app.route('/v1', files);
    app.get('/metrics', metrics.handler);
    const headers = { 'x-api-key': 'k' };
    for (const path of ['/v1/download/a/1', '/v1/download/b/2']) await app.request(path, { headers });
    await app.request('/v1/download/a/1');
    for (const path of ['/one', '/two', '/three']) await app.request(path);
    const response = await app.request('/metrics');
    expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(lines(await response.text(), 'cuvette_requests_total')).toEqual([
      'cuvette_requests_total{route="/v1/download/:session/:file",status="200"} 2',
      'cuvette_requests_total{route="/v1/download/:session/:file",status="401"} 1',
      'cuvette_requests_total{route="none",status="404"} 3',
    ]);
  });

  it('count executions by language and outcome, and measure how long they took', () => {
    const metrics = createMetrics();
    metrics.execution({ interpreter: 'builtin', outcome: 'ok', wall: 0.02 });
    metrics.execution({ interpreter: 'builtin', outcome: 'ok', wall: 0.025 });
    metrics.execution({ interpreter: 'builtin', outcome: 'timeout', wall: 400 });
    metrics.execution({ interpreter: 'bash', outcome: 'ok', wall: 1 });
    const text = metrics.render();
    expect(lines(text, 'cuvette_executions_total')).toEqual([
      'cuvette_executions_total{language="builtin",outcome="ok"} 2',
      'cuvette_executions_total{language="builtin",outcome="timeout"} 1',
      'cuvette_executions_total{language="bash",outcome="ok"} 1',
    ]);
    expect(lines(text, 'cuvette_execution_seconds_bucket{language="builtin"').slice(0, 3)).toEqual([
      'cuvette_execution_seconds_bucket{language="builtin",le="0.005"} 0',
      'cuvette_execution_seconds_bucket{language="builtin",le="0.01"} 0',
      'cuvette_execution_seconds_bucket{language="builtin",le="0.025"} 2',
    ]);
    expect(text).toContain('cuvette_execution_seconds_bucket{language="builtin",le="300"} 2\n');
    expect(text).toContain('cuvette_execution_seconds_bucket{language="builtin",le="+Inf"} 3\n');
    expect(text).toContain('cuvette_execution_seconds_sum{language="builtin"} 400.045\n');
    expect(text).toContain('cuvette_execution_seconds_count{language="builtin"} 3\n');
    expect(text).toContain('cuvette_execution_seconds_count{language="bash"} 1\n');
  });

  it('count executions of interpreters that callers have named as one language', () => {
    const metrics = createMetrics();
    for (const interpreter of ['mine', 'colab', 'x'.repeat(100)])
      metrics.execution({ interpreter, outcome: 'ok', wall: 0.02 });
    expect(lines(metrics.render(), 'cuvette_executions_total')).toEqual([
      'cuvette_executions_total{language="other",outcome="ok"} 3',
    ]);
  });

  it('have the bytes of files, the memory and uptime of the service, and the gauges of others', () => {
    const metrics = createMetrics();
    let live = 2;
    metrics.gauge('cuvette_sessions_live', 'Sessions with live interpreters.', () => live);
    expect(metrics.render()).toContain('cuvette_uploads_bytes_total 0\n');
    metrics.uploaded(5);
    metrics.uploaded(7);
    metrics.downloaded(1);
    live = 3;
    const text = metrics.render();
    expect(text).toContain('cuvette_uploads_bytes_total 12\n');
    expect(text).toContain('cuvette_downloads_bytes_total 1\n');
    expect(text).toContain(
      '# HELP cuvette_sessions_live Sessions with live interpreters.\n# TYPE cuvette_sessions_live gauge\ncuvette_sessions_live 3\n',
    );
    const value = (name: string) => Number(lines(text, name)[0]?.split(' ')[1]);
    expect(value('process_resident_memory_bytes')).toBeGreaterThan(10_000_000);
    expect(value('cuvette_uptime_seconds')).toBeGreaterThan(0);
  });
});

describe('the text of metrics', () => {
  it('escapes quotes, backslashes and new lines', () => {
    const registry = createRegistry();
    registry.counter('odd_total', 'Back\\slash\nand "quotes".')(1, { label: 'a\\b"c\nd', other: 'ü' });
    expect(registry.render()).toBe(
      '# HELP odd_total Back\\\\slash\\nand "quotes".\n# TYPE odd_total counter\nodd_total{label="a\\\\b\\"c\\nd",other="ü"} 1\n',
    );
  });

  it('writes NaN and infinities as Prometheus does', () => {
    const registry = createRegistry();
    registry.gauge('a', 'A.', () => Number.NaN);
    registry.gauge('b', 'B.', () => Number.POSITIVE_INFINITY);
    registry.gauge('c', 'C.', () => 1e21);
    expect(registry.render().match(/^[abc] .*$/gm)).toEqual(['a NaN', 'b +Inf', 'c 1e+21']);
  });

  it('has a line for each set of labels, and cumulative buckets', () => {
    const registry = createRegistry();
    const observe = registry.histogram('h', 'H.', [1, 2]);
    for (const value of [0, 1, 1.5, 3]) observe(value);
    expect(registry.render()).toBe(
      '# HELP h H.\n# TYPE h histogram\nh_bucket{le="1"} 2\nh_bucket{le="2"} 3\nh_bucket{le="+Inf"} 4\nh_sum 5.5\nh_count 4\n',
    );
  });
});
