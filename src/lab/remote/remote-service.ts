/** Presents a remote Cuvette service as a lab without a model: code runs there, in a session of the attachment's own. What needs a model is refused. */

import { nanoid } from 'nanoid';
import * as z from 'zod';
import { CuvetteError } from '../../errors.ts';
import { STREAM_HEADERS } from '../../interpreters/execution-events.ts';
import type { Output } from '../../interpreters/interpreter.ts';
import { firstLife } from '../core/code-runner.ts';
import type { LabContext } from '../core/lab.ts';
import { CODE_ALONE, type Lab } from '../core/lab.ts';
import { describeCode, interruptCode, listVariables, resetCode, runCode } from '../primitives/code.ts';
import { status } from '../primitives/lab-status.ts';
import type { Primitive } from '../primitives/primitive.ts';
import { createConnection } from './connection.ts';
import { createDisconnectedCalls } from './disconnected-calls.ts';
import { errorFrom, LostConnection, notCuvette, type Remote, unauthorized, unreachable } from './remote-errors.ts';
import type { RemoteOptions } from './remote-lab.ts';
import { createResumableCalls } from './resumable-calls.ts';
import { type ServiceRun, startServiceRun } from './service-run.ts';

type Answer = (args: Record<string, unknown>, context: LabContext) => Promise<Record<string, unknown>>;

/** What a lab with a model says of it: nothing, in each field. */
const NO_MODEL = Object.fromEntries(
  Object.entries(status.output.shape)
    .filter(([, type]) => !(type instanceof z.ZodOptional))
    .map(([field, type]) => [field, type instanceof z.ZodNumber ? 0 : 'none']),
);

const WAITS = [0, 1000, 2000, 4000, 8000, 15_000, 30_000];
/** Milliseconds; there is a heartbeat every 15 seconds. */
const SILENCE = 60_000;
/** Milliseconds: the longest that the service lets code have. */
const LONGEST = 86_400_000;
/** Milliseconds that taking leave may take. */
const FAREWELL = 3000;
/** Of the service, its Python. */
const INTERPRETER = 'builtin';

const FORGOTTEN: Output = {
  type: 'stream',
  name: 'stderr',
  text: '[The service has forgotten the session since: its variables and files are gone, and this is a fresh one.]\n',
};

const healthSchema = z.object({
  status: z.literal('healthy'),
  version: z.string(),
  /** A sentence on what keeps code from harm. */
  sandbox: z.string(),
  runtime_capabilities: z.object({
    py: z.object({ version: z.string().nullable(), install: z.string().nullable() }),
  }),
});
const rootSchema = z.object({ name: z.literal('Cuvette') });

/** Of a tool: at last an answer, and progress before it. */
const messageSchema = z.object({
  result: z.object({ structuredContent: z.unknown() }).optional(),
  error: z.object({ message: z.string() }).optional(),
});
const failureSchema = z.object({ error: z.object({ code: z.string(), message: z.string() }) });

export function createRemoteService(options: RemoteOptions): Lab {
  const { endpoint, token, disconnected = createDisconnectedCalls(), waits = WAITS, silence = SILENCE } = options;
  const remote: Remote = { endpoint, kind: 'service' };
  const connection = createConnection({ remote, token, instanceHeader: STREAM_HEADERS.instance, silence });
  const calls = createResumableCalls({ connection, disconnected, waits });
  const runs = new Map<string, ServiceRun>();
  /** The name that this attachment has for its session there, and the session's id once there is one. */
  const entity = nanoid();
  let session: string | undefined;
  let life = firstLife();

  const answers: Record<string, Answer | undefined> = {
    async [status.name](_, { signal }) {
      const { version, sandbox } = await health(signal);
      return status.output.parse({ ...NO_MODEL, ok: true, version, protocol: CODE_ALONE, sandbox });
    },

    async [describeCode.name](_, { signal }) {
      const { py } = (await health(signal)).runtime_capabilities;
      if (py.version === null)
        throw new CuvetteError('python_missing', `There is no Python at ${endpoint}. ${py.install ?? ''}`.trim());
      const executable = `Python of ${endpoint}`;
      return { version: py.version, executable, life } satisfies Answered<typeof describeCode>;
    },

    async [runCode.name](args, context) {
      const { code, run: name, timeout, limit } = runCode.input.parse(args);
      const milliseconds = timeout === null ? LONGEST : Math.min(timeout * 1000, LONGEST);
      const run = startServiceRun({
        remote,
        calls,
        reach: () => reach(context.signal),
        identity: { of: endpoint, name: runCode.name, args },
        body: { lang: 'py', code, timeout: milliseconds, entity_id: entity },
        limit,
        context,
        onSession({ session_id, is_new }) {
          if (is_new && session !== undefined) context.output?.(FORGOTTEN);
          session = session_id;
        },
      });
      runs.set(name, run);
      try {
        const ending = await run.ending;
        const itsLife = life;
        if (ending.death) life += 1;
        return { ending, life: itsLife } satisfies Answered<typeof runCode>;
      } finally {
        runs.delete(name);
      }
    },

    async [interruptCode.name](args) {
      runs.get(interruptCode.input.parse(args).run)?.stop('cancelled');
      return { ok: true } satisfies Answered<typeof interruptCode>;
    },

    async [listVariables.name](_, { signal }) {
      return listVariables.output.parse((await ask('list_vars', signal)) ?? { variables: [] });
    },

    async [resetCode.name](_, { signal }) {
      await ask('reset', signal);
      life += 1;
      return { ok: true } satisfies Answered<typeof resetCode>;
    },
  };

  async function health(signal: AbortSignal): Promise<z.infer<typeof healthSchema>> {
    const told = healthSchema.safeParse(await json('/health', signal));
    if (told.success) return told.data;
    // It says so much to everybody, and the rest to those whom it knows.
    const isService = rootSchema.safeParse(await json('/', signal)).success;
    throw isService ? unauthorized(remote) : notCuvette(remote, 'it says other things of itself');
  }

  /** Tells at once that nobody is there. It is tried twice: a connection that was kept from the last call may have died since. */
  async function reach(signal: AbortSignal): Promise<void> {
    await json('/', signal).catch(() => json('/', signal));
  }

  async function json(path: string, signal: AbortSignal): Promise<unknown> {
    const response = await connection.send({ method: 'GET', path }, signal).catch(toUnreachable);
    return response.json().catch(() => undefined);
  }

  /** One of the service's own tools; nothing, where there is no session yet or none any more. */
  async function ask(tool: string, signal: AbortSignal): Promise<unknown> {
    if (session === undefined) return undefined;
    try {
      return await call(tool, { session, interpreter: INTERPRETER }, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof CuvetteError && error.code === 'unknown_session') return undefined;
      return toUnreachable(error);
    }
  }

  async function call(name: string, args: Record<string, unknown>, signal: AbortSignal): Promise<unknown> {
    const params = { name, arguments: args, _meta: { 'cuvette/structured': true } };
    const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
    for await (const { data } of await connection.open({ method: 'POST', path: '/mcp', body }, signal)) {
      const { result, error } = messageSchema.parse(JSON.parse(data));
      if (error) throw errorFrom('', error.message, remote);
      if (!result) continue;
      const failure = failureSchema.safeParse(result.structuredContent);
      if (failure.success) throw errorFrom(failure.data.error.code, failure.data.error.message, remote);
      return result.structuredContent;
    }
    throw new LostConnection('it ended before its answer', true);
  }

  function toUnreachable(error: unknown): never {
    throw error instanceof LostConnection ? unreachable(remote, error, false) : error;
  }

  return {
    async call(name, args, context) {
      const answer = answers[name];
      if (!answer) throw noModel(endpoint);
      return answer(args, context);
    },
    /** Its variables would be of no use to anyone, and its memory may be. Files stay for as long as the service keeps them. */
    async close() {
      await calls.close();
      if (session === undefined) return;
      await call('stop_interpreter', { session, name: INTERPRETER }, AbortSignal.timeout(FAREWELL)).catch(() => {});
    },
  };
}

/** What a primitive answers, by its schema. */
type Answered<P extends Primitive> = z.infer<P['output']>;

function noModel(endpoint: string): CuvetteError {
  return new CuvetteError(
    'unknown_model',
    `The Cuvette at ${endpoint} runs code alone, and has no model. For this, start cuvette lab serve --model MODEL there, and call colab_attach with its address and token.`,
  );
}
