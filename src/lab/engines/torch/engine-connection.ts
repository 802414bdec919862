/**
 * Sends requests to the engine in a Python interpreter over a socket, and cancels those that were aborted. Validates what comes back, since user code runs in that process, too.
 */

import type { Socket } from 'node:net';
import * as z from 'zod';
import { CuvetteError, type ErrorCode } from '../../../errors.ts';
import { openSocket } from '../../../interpreters/python/driver.ts';
import { awaitAnswer, type PendingRequest } from '../pending-requests.ts';
import { createFrameReader, encodeFrame, type Numbers, type Tensor } from './wire.ts';

export interface EngineConnection {
  readonly model: EngineModel;
  ask(header: object, tensors: readonly Tensor[], signal?: AbortSignal): Promise<TorchAnswer>;
  /** Sets what makes the error for pending requests when the connection is lost. */
  onLost(explain: () => Promise<CuvetteError>): void;
  isLost(): boolean;
  close(): void;
}

export interface TorchAnswer {
  answer: unknown;
  tensors: Numbers[];
}

const count = z.number().int().nonnegative();
const Model = z.object({
  architecture: z.string(),
  layers: count,
  width: count,
  heads: count,
  headWidth: count.optional(),
  vocabulary: count,
  context: count,
  parameters: count,
  dtype: z.string(),
  device: z.string(),
});
/** What the other side knows of the model. */
export type EngineModel = z.infer<typeof Model>;

const Hello = z.object({ model: Model });
const CODES = ['bad_model', 'internal', 'invalid_input', 'too_large'] as const satisfies ErrorCode[];
const Reply = z.union([
  z.object({ id: count, answer: z.unknown().refine((answer) => answer !== undefined) }),
  z.object({ id: count, failed: z.object({ code: z.enum(CODES), message: z.string() }) }),
]);

type Pending = Map<number, PendingRequest<TorchAnswer>>;

/** Undefined if nobody listens there. */
export async function openEngineConnection(path: string): Promise<EngineConnection | undefined> {
  const socket = await openSocket(path);
  return socket && greet(socket);
}

function greet(socket: Socket): Promise<EngineConnection | undefined> {
  return new Promise((resolve) => {
    const pending: Pending = new Map();
    let isGreeted = false;
    const read = createFrameReader(({ header, tensors }) => {
      if (isGreeted) return settle(pending, Reply.parse(header), tensors);
      isGreeted = true;
      resolve(createConnection(socket, pending, Hello.parse(header).model));
    });
    socket.on('data', (chunk) => {
      try {
        read(chunk);
      } catch {
        // The other side breaks the protocol, and cannot be trusted any more.
        socket.destroy();
      }
    });
    socket.on('error', () => socket.destroy());
    socket.once('close', () => resolve(undefined));
  });
}

function settle(pending: Pending, reply: z.infer<typeof Reply>, tensors: Numbers[]): void {
  const waiting = pending.get(reply.id);
  if ('failed' in reply) waiting?.reject(new CuvetteError(reply.failed.code, reply.failed.message));
  else waiting?.resolve({ answer: reply.answer, tensors });
}

function createConnection(socket: Socket, pending: Pending, model: EngineModel): EngineConnection {
  let asked = 0;
  let explain = async () => new CuvetteError('interpreter_failed', 'The torch engine is gone. Open the model again.');
  // An idle connection keeps no program from ending.
  socket.unref();
  socket.once('close', async () => {
    if (pending.size === 0) return;
    const error = await explain();
    for (const { reject } of pending.values()) reject(error);
  });

  return {
    model,
    async ask(header, tensors, signal) {
      signal?.throwIfAborted();
      if (socket.closed || socket.destroyed) throw await explain();
      const id = asked++;
      const send = () => write({ id, ...header }, tensors);
      const cancel = () => write({ cancel: id }, []);
      return awaitAnswer(pending, id, socket, { send, cancel }, signal);
    },
    onLost(explanation) {
      explain = explanation;
    },
    isLost: () => socket.closed || socket.destroyed,
    close: () => socket.destroy(),
  };

  function write(header: object, tensors: readonly Tensor[]): void {
    for (const piece of encodeFrame(header, tensors)) socket.write(piece);
  }
}
