/** Counts requests, executions and bytes for `GET /metrics`. */

import type { Handler, MiddlewareHandler } from 'hono';
import { matchedRoutes } from 'hono/route';
import { CuvetteError } from '../../errors.ts';
import { languageNamed } from '../../interpreters/process/languages.ts';
import type { EndingReasonCode, ExecutionRecord } from '../../sessions/execution-record.ts';
import { BUILTIN } from '../../sessions/interpreter-catalog.ts';
import type { Principal, RestEnv } from '../caller.ts';
import { CONTENT_TYPE, createRegistry, type Sample } from './prometheus.ts';

/** Seconds, from a warm call to the longest one that is usual. */
const BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];

type CountedExecution = Pick<ExecutionRecord, 'interpreter' | 'outcome' | 'wall'> &
  Partial<Pick<ExecutionRecord, 'origin' | 'reason'>>;

/** Callers that are counted by name; each makes series that stay. */
const MOST_CALLERS = 100;
const LIMITS: EndingReasonCode[] = ['timeout', 'output-limit', 'oom', 'too-many-processes', 'disk-quota'];

export interface Metrics {
  middleware: MiddlewareHandler<RestEnv>;
  handler: Handler<RestEnv>;
  /** Counts an execution that has ended, from every surface. */
  execution(record: CountedExecution, caller?: string): void;
  /** Counts what a caller was refused, once, whoever tells of it. */
  refused(error: unknown, caller?: string): void;
  /** What was counted, by the names of the metrics. */
  read(): Record<string, Sample[]>;
  uploaded(bytes: number): void;
  downloaded(bytes: number): void;
  gauge(name: string, help: string, read: () => number): void;
  render(): string;
}

export function createMetrics(): Metrics {
  const registry = createRegistry();
  const requests = registry.counter('cuvette_requests_total', 'Requests answered.');
  const executions = registry.counter('cuvette_executions_total', 'Executions that have ended.');
  const seconds = registry.histogram('cuvette_execution_seconds', 'How long executions took.', BUCKETS);
  const uploads = registry.counter('cuvette_uploads_bytes_total', 'Bytes of files uploaded.');
  const downloads = registry.counter('cuvette_downloads_bytes_total', 'Bytes of files downloaded.');
  const calls = registry.counter('cuvette_calls_total', 'Executions that have ended, by caller and surface.');
  const callSeconds = registry.histogram('cuvette_call_seconds', 'How long they took, by surface.', BUCKETS);
  const limits = registry.counter('cuvette_limits_hit_total', 'Executions that ran into a limit.');
  const refusals = registry.counter('cuvette_refusals_total', 'Requests and executions that were refused.');
  const callers = new Set<string>();
  const counted = new WeakSet<Error>();
  uploads(0);
  downloads(0);
  registry.gauge('cuvette_uptime_seconds', 'Seconds since the service started.', () => process.uptime());
  registry.gauge('process_resident_memory_bytes', 'Memory of the service, without its interpreters.', () =>
    process.memoryUsage.rss(),
  );
  registry.gauge('nodejs_heap_size_used_bytes', "Memory in use by the service's objects.", () => {
    return process.memoryUsage().heapUsed;
  });

  function nameOf(caller: string | undefined): string {
    if (caller === undefined) return 'nobody';
    if (callers.size < MOST_CALLERS) callers.add(caller);
    return callers.has(caller) ? caller : 'other';
  }

  function refused(error: unknown, caller?: string): void {
    if (!(error instanceof CuvetteError) || counted.has(error)) return;
    counted.add(error);
    refusals(1, { principal: nameOf(caller), code: error.code });
  }

  return {
    async middleware(c, next) {
      await next();
      const principal: Principal | undefined = c.get('principal');
      refused(c.error, principal?.id);
      // Labelled by the route's pattern, because each path would make a series of its own.
      const route = matchedRoutes(c).findLast(({ path }) => path !== '/*' && path !== '*')?.path ?? 'none';
      requests(1, { route, status: c.res.status });
    },
    handler: (c) => c.body(registry.render(), 200, { 'content-type': CONTENT_TYPE }),
    execution({ interpreter, outcome, wall, origin, reason }, caller) {
      const surface = origin ?? 'unknown';
      const principal = nameOf(caller);
      calls(1, { principal, surface, outcome: outcome ?? 'none' });
      if (wall !== null) callSeconds(wall, { surface });
      if (reason && LIMITS.includes(reason.code)) limits(1, { principal, limit: reason.code });
      const language = isCounted(interpreter) ? interpreter : 'other';
      executions(1, { language, outcome: outcome ?? 'none' });
      if (wall !== null) seconds(wall, { language });
    },
    uploaded: (bytes) => uploads(bytes),
    downloaded: (bytes) => downloads(bytes),
    gauge: registry.gauge,
    refused,
    read: registry.read,
    render: registry.render,
  };
}

/** Interpreters that callers have named are counted together, because each name would make a series that stays. */
function isCounted(interpreter: string): boolean {
  return interpreter === BUILTIN || languageNamed(interpreter) !== undefined;
}
