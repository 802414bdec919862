/** Parses the driver's messages strictly, because the process that sends them also runs user code. */

import * as z from 'zod';
import { CuvetteError } from '../../errors.ts';
import { parseGuarded } from '../../json-guard.ts';
import {
  type ExitReport,
  escalation,
  type InterpreterEvent,
  type Output,
  reachedLimit,
  stopReason,
  variableSchema,
} from '../interpreter.ts';

/** Characters of a line that is looked at before it is parsed. */
const GUARDED_FROM = 256_000;
/** A plot of hundreds of thousands of points has as many values. */
const MOST_VALUES = 1_000_000;
const LONGEST_END = 200;

const bundle = z.record(z.string(), z.unknown());
const death = z.object({
  exit: z.number().nullable(),
  signal: z.string().nullable(),
  oom: z.boolean(),
  cpu: z.number(),
  peak: z.number(),
});

const hello = z.object({
  ev: z.literal('hello'),
  pid: z.number(),
  worker: z.number(),
  generation: z.number(),
  running: z.string().nullable(),
  python: z.string(),
  executable: z.string(),
  ipython: z.string().nullable(),
  /** Questions that it answers; keepers of earlier versions answer none, and do not tell. */
  asks: z.array(z.string()).optional(),
});

const shown = { seq: z.number(), id: z.string() };
const rich = { data: bundle, metadata: bundle.default({}), preview: z.string().optional() };

const done = z.object({
  ev: z.literal('done'),
  ...shown,
  status: z.enum(['ok', 'error', 'exit', 'signal']).optional(),
  code: z.number().optional(),
  ename: z.string().optional(),
  signal: z.string().optional(),
  oom: z.boolean().optional(),
  steps: z.number().optional(),
  death: death.optional(),
  cause: z.string().nullable(),
  stopped: z.object({ why: stopReason, rung: escalation }).nullable(),
  wall: z.number(),
  cpu: z.number().optional(),
  peak: z.number().optional(),
  ended: z.array(z.string()),
  hit: z.array(reachedLimit).optional(),
});

const message = z.discriminatedUnion('ev', [
  hello,
  z.object({ ev: z.literal('stream'), ...shown, name: z.enum(['stdout', 'stderr']), text: z.string() }),
  z.object({
    ev: z.literal('display'),
    ...shown,
    ...rich,
    display_id: z.string().optional(),
    update: z.boolean().optional(),
  }),
  z.object({ ev: z.literal('result'), ...shown, ...rich }),
  z.object({ ev: z.literal('error'), ...shown, ename: z.string(), evalue: z.string(), traceback: z.array(z.string()) }),
  z.object({ ev: z.literal('install'), ...shown, name: z.string() }),
  z.object({ ev: z.literal('built'), ...shown }),
  done,
  z.object({ ev: z.literal('variables'), ...shown, variables: z.array(variableSchema) }),
  z.object({
    ev: z.literal('answered'),
    ...shown,
    answer: z.unknown().optional(),
    problem: z
      .object({ code: z.enum(['missing', 'invalid', 'timeout', 'failed', 'died', 'busy']), message: z.string() })
      .optional(),
  }),
  z.object({ ev: z.literal('reset'), ...shown, worker: z.number(), generation: z.number() }),
  z.object({
    ev: z.literal('restarted'),
    seq: z.number(),
    worker: z.number(),
    generation: z.number(),
    idle: z.boolean(),
    death,
  }),
]);

export type DriverMessage = z.infer<typeof message>;
export type Hello = z.infer<typeof hello>;

/** The message, or undefined for one that makes no sense. In place of an output that would take long to parse, it is said that there was one. */
export function parseMessage(line: string): DriverMessage | undefined {
  try {
    const parsed = line.length > GUARDED_FROM ? parseGuarded(line, MOST_VALUES) : JSON.parse(line);
    return message.safeParse(parsed).data;
  } catch (error) {
    return error instanceof CuvetteError ? leftOut(line, error) : undefined;
  }
}

/** By what stands at the end of a line, where the keeper writes it: whose output it was, and its number. */
function leftOut(line: string, { message: why }: CuvetteError): DriverMessage | undefined {
  const [, id, seq] = /"id": ?"(\d+)", ?"seq": ?(\d+)\}$/.exec(line.slice(-LONGEST_END)) ?? [];
  if (id === undefined || seq === undefined) return undefined;
  return { ev: 'stream', id, seq: Number(seq), name: 'stderr', text: `[An output was left out. ${why}]\n` };
}

/** The events that concern one execution; the other messages answer the server's own questions. */
export function toEvent(message: DriverMessage): InterpreterEvent | undefined {
  if (message.ev === 'install')
    return { kind: 'missing-package', id: message.id, seq: message.seq, module: message.name };
  if (message.ev === 'built') return { kind: 'built', id: message.id, seq: message.seq };
  if (message.ev === 'done') return { kind: 'done', id: message.id, seq: message.seq, ending: toEnding(message) };
  const output = toOutput(message);
  return output && 'id' in message ? { kind: 'output', id: message.id, seq: message.seq, output } : undefined;
}

function toOutput(message: DriverMessage): Output | undefined {
  if (message.ev === 'stream') return { type: 'stream', name: message.name, text: message.text };
  if (message.ev === 'error') {
    return { type: 'error', ename: message.ename, evalue: message.evalue, traceback: message.traceback };
  }
  if (message.ev === 'result') {
    return withoutUndefined({
      type: 'result' as const,
      data: message.data,
      metadata: message.metadata,
      preview: message.preview,
    });
  }
  if (message.ev !== 'display') return undefined;
  return withoutUndefined({
    type: 'display' as const,
    data: message.data,
    metadata: message.metadata,
    preview: message.preview,
    displayId: message.display_id,
    update: message.update,
  });
}

function toEnding(message: z.infer<typeof done>): ExitReport {
  const { death, stopped } = message;
  return withoutUndefined({
    status: death ? 'death' : (message.status ?? 'ok'),
    exitCode: message.code,
    errorName: message.ename,
    death: death && { exit: death.exit, signal: death.signal, oom: death.oom },
    signal: message.signal,
    isOutOfMemory: message.oom,
    steps: message.steps,
    brokeChannel: message.cause === 'channel' || undefined,
    stopped: stopped ?? undefined,
    hit: message.hit,
    wall: message.wall,
    cpu: death?.cpu ?? message.cpu ?? 0,
    peak: death?.peak ?? message.peak ?? 0,
    ended: message.ended,
  });
}

type Defined<T> = { [K in keyof T]: Exclude<T[K], undefined> };

/** Absent, rather than present and undefined. */
function withoutUndefined<T extends object>(value: T): Defined<T> {
  return Object.fromEntries(Object.entries(value).filter(([, item]) => item !== undefined)) as Defined<T>;
}
