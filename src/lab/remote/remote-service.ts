/**
 * A Cuvette service elsewhere as a lab without a model: code runs there, in a session of the attachment's own. What needs a model
 * is refused.
 */

import * as z from 'zod';
import { CuvetteError } from '../../errors.ts';
import { type Output, variableSchema } from '../../interpreters/interpreter.ts';
import { firstLife } from '../core/code-runner.ts';
import type { LabContext } from '../core/lab.ts';
import { CODE_ALONE, type Lab } from '../core/lab.ts';
import { describeCode, interruptCode, listVariables, resetCode, runCode } from '../primitives/code.ts';
import { status } from '../primitives/lab-status.ts';
import { createServiceClient } from './service-client.ts';
import { createServiceRun, type ServiceRun } from './service-run.ts';

type Answer = (args: Record<string, unknown>, context: LabContext) => Promise<Record<string, unknown>>;

const NONE = 'none';
const NO_MODEL = {
  model_id: NONE,
  device: NONE,
  dtype: NONE,
  engine: NONE,
  architecture: NONE,
  layers: 0,
  d_model: 0,
  vocabulary: 0,
  context: 0,
  parameters: 0,
  weights_sha256: NONE,
  tokenizer_sha256: NONE,
  probes_loaded: 0,
  captures_in_memory: 0,
  family: 0,
};

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

const variablesSchema = z.object({ variables: z.array(variableSchema) });

export function createRemoteService(options: { endpoint: string; token: string | undefined }): Lab {
  const { endpoint } = options;
  const client = createServiceClient(options);
  const runs = new Map<string, ServiceRun>();
  /** The id of the session there, once there is one. */
  let session: string | undefined;
  let life = firstLife();
  /** A call that waited for its turn there would look like a connection that is dead. */
  let turn: Promise<unknown> = Promise.resolve();

  const answers: Record<string, Answer | undefined> = {
    async [status.name](_, { signal }) {
      const { version, sandbox } = await client.health(signal);
      return { ok: true, version, protocol: CODE_ALONE, ...NO_MODEL, sandbox };
    },

    async [describeCode.name](_, { signal }) {
      const { py } = (await client.health(signal)).runtime_capabilities;
      if (py.version !== null) return { version: py.version, executable: `Python of ${endpoint}`, life };
      throw new CuvetteError('python_missing', `There is no Python at ${endpoint}. ${py.install ?? ''}`.trim());
    },

    async [runCode.name](args, { signal, output }) {
      const { code, run: name, timeout, limit } = runCode.input.parse(args);
      const run = createServiceRun({
        client,
        body: {
          lang: 'py',
          code,
          timeout: timeout === null ? LONGEST : Math.min(timeout * 1000, LONGEST),
        },
        limit,
        signal,
        async findSession(within) {
          const found = await client.session(session, within);
          if (session !== undefined && found.session !== session) output?.(FORGOTTEN);
          session = found.session;
          return found;
        },
        onOutput: (one) => output?.(one),
      });
      runs.set(name, run);
      try {
        const mine = run.ending(turn);
        // One that ends before its turn does not let the next one past those before it.
        turn = Promise.allSettled([turn, mine]);
        const ending = await mine;
        const itsLife = life;
        if (ending.death) life += 1;
        return { ending: { ...ending }, life: itsLife };
      } finally {
        runs.delete(name);
      }
    },

    async [interruptCode.name](args) {
      runs.get(interruptCode.input.parse(args).run)?.stop('cancelled');
      return { ok: true };
    },

    async [listVariables.name](_, { signal }) {
      return variablesSchema.parse((await ask('list_vars', signal)) ?? { variables: [] });
    },

    async [resetCode.name](_, { signal }) {
      await ask('reset', signal);
      life += 1;
      return { ok: true };
    },
  };

  /** Of the service's own tools; nothing, where there is no session yet or none any more. */
  async function ask(tool: string, signal: AbortSignal): Promise<unknown> {
    if (session === undefined) return undefined;
    try {
      return await client.tool(tool, { session, interpreter: INTERPRETER }, signal);
    } catch (error) {
      if (error instanceof CuvetteError && error.code === 'unknown_session') return undefined;
      throw error;
    }
  }

  return {
    async call(name, args, context) {
      const answer = answers[name];
      if (!answer) throw noModel(endpoint);
      return answer(args, context);
    },
    /** Its variables would be of no use to anyone, and its memory may be. Files stay for as long as the service keeps them. */
    async close() {
      if (session === undefined) return;
      await client
        .tool('stop_interpreter', { session, name: INTERPRETER }, AbortSignal.timeout(FAREWELL))
        .catch(() => {});
    },
  };
}

function noModel(endpoint: string): CuvetteError {
  return new CuvetteError(
    'unknown_model',
    `The Cuvette at ${endpoint} runs code alone, and has no model. For this, start cuvette lab serve --model MODEL there, and call colab_attach with its address and token.`,
  );
}
