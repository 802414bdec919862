/**
 * Implements the engine interface with a transformers model in a Python interpreter, on a GPU where there is one. Checks requests, passes them on, and
 * reconnects when the Python was restarted. Code that runs in the same Python shares the model.
 */

import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { nanoid } from 'nanoid';
import * as z from 'zod';
import { CuvetteError } from '../../../errors.ts';
import { untilAborted } from '../../core/abort-signals.ts';
import type { CodeRunner } from '../../core/code-runner.ts';
import type { Engine, ModelDescription } from '../../core/engine.ts';
import type { Sae } from '../../core/sae.ts';
import { hashesOfModel } from '../../models/hashes.ts';
import { activateSae, prepareSaeInput } from '../../sae/encode.ts';
import { checkAttribution, checkGenerate, checkRun, checkSaeRows } from '../check-request.ts';
import { createCodeRunner } from './code-runner.ts';
import { type EngineConnection, openEngineConnection, type TorchAnswer } from './engine-connection.ts';
import { decodeAttribution, decodeRun, encodeAttribution, encodeGenerate, encodeRun } from './requests.ts';
import { readFailure, startupCode, type TorchSettings } from './startup.ts';
import { createTorchInterpreter, type TorchInterpreter, type TorchInterpreterOptions } from './torch-interpreter.ts';
import type { Tensor } from './wire.ts';

export interface TorchEngineOptions extends TorchSettings, Omit<TorchInterpreterOptions, 'startup'> {
  /** As the user named the model. */
  id: string;
  /** Of the model, as Hugging Face lays it out. */
  folder: string;
  signal?: AbortSignal;
}

export interface TorchEngine extends Engine {
  /** Runs code in the Python that holds the model, as `model`, with `tokenizer` and `captures`. */
  execute: TorchInterpreter['execute'];
  /** The same, for callers of a lab. */
  code: CodeRunner;
  /** Has code find the captures that are kept in this folder. */
  showCaptures(folder: string): Promise<void>;
}

/** Bytes of products with an encoder that come back at a time. */
const PRODUCTS = 64 * 2 ** 20;

export async function createTorchEngine(options: TorchEngineOptions): Promise<TorchEngine> {
  const { id, folder, python, runtime } = options;
  mkdirSync(join(runtime, 'l'), { recursive: true, mode: 0o700 });
  const socket = join(runtime, 'l', `${process.pid}.${nanoid(6)}`);
  const startup = startupCode({ ...options, socket });
  const interpreter = createTorchInterpreter({ ...options, startup });
  const saeNumbers = new WeakMap<Sae, number>();
  let saes = 0;
  let captures: string | undefined;
  let isClosed = false;
  let connecting: Promise<EngineConnection> | undefined;

  let connection: EngineConnection;
  let description: ModelDescription;
  try {
    const [hashes, opened] = await Promise.all([hashesOfModel(folder, options.signal), connect(options.signal)]);
    connection = opened;
    description = { id, engine: 'torch', ...opened.model, ...hashes };
  } catch (error) {
    await close();
    throw error;
  }

  /** Has the model loaded, if it is not. */
  async function connect(signal?: AbortSignal): Promise<EngineConnection> {
    const { outputs, ending } = await interpreter.execute('None', { signal });
    signal?.throwIfAborted();
    const failure = readFailure(outputs, ending, id, python);
    const opened = failure ? undefined : await openEngineConnection(socket);
    // Nobody else is to come.
    rmSync(socket, { force: true });
    if (!opened) {
      // A worker that could not load the model once does not try again.
      await interpreter.stop();
      throw failure ?? new CuvetteError('interpreter_failed', `${python} does not have ${id} loaded. Ask again.`);
    }
    opened.onLost(explain);
    if (captures !== undefined) await opened.ask({ do: 'captures', folder: captures }, [], signal);
    return opened;
  }

  async function explain(): Promise<CuvetteError> {
    if (isClosed) return new CuvetteError('internal', 'The engine has been closed. Open the model again.');
    const cause = await interpreter.causeOfDeath();
    return new CuvetteError(
      'interpreter_failed',
      `The Python that held ${id} ended${cause === undefined ? '' : ` (${cause})`}, and what it computed is lost. ` +
        'Ask again: the model is then loaded again, which takes as long as the first time. Captures, probes and records are on disk.',
    );
  }

  async function reconnect(): Promise<EngineConnection> {
    const opened = await connect();
    const { weights, tokenizer } = await hashesOfModel(folder);
    if (weights === description.weights && tokenizer === description.tokenizer) return opened;
    opened.close();
    throw new CuvetteError(
      'bad_model',
      `The model in ${folder} is not the one that was opened as ${id}. Open it again.`,
    );
  }

  async function ask(header: object, tensors: readonly Tensor[], signal?: AbortSignal): Promise<TorchAnswer> {
    if (isClosed) throw await explain();
    if (connection.isLost()) {
      // For all who ask, whoever of them gives up.
      connecting ??= reconnect().finally(() => {
        connecting = undefined;
      });
      connection = await untilAborted(connecting, signal);
    }
    return connection.ask(header, tensors, signal);
  }

  async function products(sae: Sae, rows: Float32Array, signal?: AbortSignal): Promise<Float32Array> {
    const known = saeNumbers.get(sae);
    const number = known ?? saes++;
    saeNumbers.set(sae, number);
    const header = { do: 'encode', sae: number };
    const input = { shape: [rows.length / sae.width, sae.width], data: rows };
    const encoder = { shape: [sae.features, sae.width], data: sae.encoder };
    const first = await ask(header, known === undefined ? [input, encoder] : [input], signal);
    const { tensors } = first.tensors.length > 0 ? first : await ask(header, [input, encoder], signal);
    return tensors[0] instanceof Float32Array ? tensors[0] : unexpected();
  }

  async function close(): Promise<void> {
    isClosed = true;
    connection?.close();
    await interpreter.close();
    rmSync(socket, { force: true });
  }

  return {
    describe: () => description,

    async tokenize(texts, { special = true } = {}) {
      const { answer } = await ask({ do: 'tokenize', texts, special }, []);
      return Tokens.parse(answer).tokens;
    },

    async detokenize(tokens, { special = false } = {}) {
      const { answer } = await ask({ do: 'detokenize', tokens, special }, []);
      return Text.parse(answer).text;
    },

    async run(request, signal) {
      checkRun(request, description);
      const { header, tensors } = encodeRun(request);
      const answer = await ask(header, tensors, signal);
      return decodeRun(request, answer.tensors, description);
    },

    async generate(request, signal) {
      checkGenerate(request, description);
      const { header, tensors } = encodeGenerate(request);
      const { answer } = await ask(header, tensors, signal);
      return Generated.parse(answer).generated;
    },

    async attribute(request, signal) {
      checkAttribution(request, description);
      const { header, tensors } = encodeAttribution(request);
      const answer = await ask(header, tensors, signal);
      return decodeAttribution(request, answer.tensors, description);
    },

    async encodeSae(sae, rows, signal) {
      checkSaeRows(rows, sae.width, description);
      const input = prepareSaeInput(sae, rows);
      const features = new Float32Array((rows.length / sae.width) * sae.features);
      const most = Math.max(1, Math.floor(PRODUCTS / 4 / sae.features)) * sae.width;
      for (let start = 0; start < input.length; start += most) {
        const some = await products(sae, input.subarray(start, start + most), signal);
        features.set(some, (start / sae.width) * sae.features);
      }
      return activateSae(sae, features);
    },

    execute: interpreter.execute,
    code: createCodeRunner(interpreter),

    async showCaptures(shown) {
      captures = shown;
      await ask({ do: 'captures', folder: shown }, []);
    },

    close,
  };
}

const token = z.number().int();
const Tokens = z.object({ tokens: z.array(z.array(token)) });
const Text = z.object({ text: z.string() });
const Generated = z.object({ generated: z.array(z.array(token)) });

function unexpected(): never {
  throw new Error('The torch engine has answered something else than what it was asked.');
}
