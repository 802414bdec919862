/** Connects to one session's keeper: speaks the driver's protocol, and hides it behind `LiveInterpreter`. */

import { existsSync, readdirSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import type * as z from 'zod';
import { CuvetteError, type ErrorCode } from '../../errors.ts';
import { createLineWriter, readLines } from '../../json-lines.ts';
import {
  completionSchema,
  type InterpreterEvent,
  type LiveInterpreter,
  type Variable,
  valueViewSchema,
} from '../interpreter.ts';
import { type DriverMessage, type Hello, parseMessage, toEvent } from './messages.ts';

const ACKNOWLEDGE_WITHIN_MS = 20;
/** Seconds until a question is interrupted. Sorting and filtering read whole tables. */
const LOOK_SECONDS = 5;
const SEARCH_SECONDS = 30;
const COMPLETE_SECONDS = 3;
/** Seconds in which the keeper ends what ignores interrupts, and answers; then some, for a busy machine. */
const LADDER_SECONDS = 25;

/** Connects to a driver that listens on this socket; undefined if none does. */
export async function connectDriver(path: string): Promise<LiveInterpreter | undefined> {
  const socket = await openSocket(path);
  return socket && (await greet(socket));
}

export function openSocket(path: string): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once('connect', () => resolve(socket));
    socket.once('error', () => resolve(undefined));
  });
}

/** Stops the keepers whose sockets in that folder have such names; not to be used for those of another server that runs. */
export async function endKeepers(sockets: string, isMeant: (name: string) => boolean): Promise<void> {
  const names = existsSync(sockets) ? readdirSync(sockets).filter(isMeant) : [];
  await Promise.all(names.map(async (name) => (await connectDriver(join(sockets, name, 'sock')))?.stop()));
}

function greet(socket: Socket): Promise<LiveInterpreter | undefined> {
  return new Promise((resolve) => {
    let handle: ((message: DriverMessage) => void) | undefined;
    readLines(socket, (line) => {
      const message = parseMessage(line);
      if (!message) return;
      if (message.ev !== 'hello') return handle?.(message);
      const driver = createDriver(socket, message);
      handle = driver.handle;
      resolve(driver.interpreter);
    });
    socket.once('close', () => resolve(undefined));
    socket.on('error', () => socket.destroy());
  });
}

function createDriver(socket: Socket, hello: Hello) {
  const state = {
    pid: hello.pid,
    version: hello.python,
    executable: hello.executable,
    generation: hello.generation,
    running: hello.running,
  };
  let onEvent: ((event: InterpreterEvent) => void) | undefined;
  // Replayed events come right after the greeting, before anybody listens.
  let early: InterpreterEvent[] = [];
  const waiting = new Map<string, { resolve: (message: DriverMessage) => void; reject: (error: Error) => void }>();
  let onIdleDeath: ((cause: string) => void) | undefined;
  let questions = 0;

  const lines = createLineWriter(socket);
  let acknowledged: number | undefined;
  let timer: NodeJS.Timeout | undefined;

  /** Sends pending acknowledgements along: a write for each would wake the keeper before the message that matters. */
  function send(message?: object): void {
    clearTimeout(timer);
    timer = undefined;
    const messages = acknowledged === undefined ? [] : [{ op: 'ack', seq: acknowledged }];
    acknowledged = undefined;
    lines.write(message ? [...messages, message] : messages);
  }

  function ask(op: string, fields: object = {}, id = nextId(op)): Promise<DriverMessage> {
    return new Promise((resolve, reject) => {
      waiting.set(id, { resolve, reject });
      send({ op, id, ...fields });
    });
  }

  function nextId(op: string): string {
    questions += 1;
    return `${op}-${questions}`;
  }

  /** Asks what may run code of the user's objects, and so may not end by itself: the keeper ends it, as it ends an execution. */
  async function question(
    op: 'inspect' | 'complete',
    fields: object,
    timeout: number,
    signal?: AbortSignal,
  ): Promise<unknown> {
    if (!hello.asks?.includes(op)) throw outdated();
    signal?.throwIfAborted();
    const id = nextId(op);
    const cancel = () => send({ op: 'interrupt', id, reason: 'cancelled' });
    signal?.addEventListener('abort', cancel, { once: true });
    const timer = setTimeout(
      () => {
        waiting.get(id)?.reject(new CuvetteError('interpreter_failed', 'The interpreter does not answer. Restart it.'));
        waiting.delete(id);
      },
      (timeout + LADDER_SECONDS) * 1000,
    );
    try {
      const message = await ask(op, { ...fields, timeout }, id);
      if (message.ev !== 'answered') throw new Error(`${message.ev} is no answer to a question.`);
      if (message.problem) throw problemError(message.problem);
      return message.answer;
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', cancel);
    }
  }

  function handle(message: DriverMessage): void {
    if (message.ev === 'restarted') {
      state.generation = message.generation;
      if (message.idle) onIdleDeath?.(message.death.signal ?? `exit status ${message.death.exit}`);
      return;
    }
    if (message.ev === 'variables' || message.ev === 'reset' || message.ev === 'answered') {
      if (message.ev === 'reset') state.generation = message.generation;
      waiting.get(message.id)?.resolve(message);
      waiting.delete(message.id);
      return;
    }
    const event = toEvent(message);
    if (!event) return;
    if (onEvent) onEvent(event);
    else early.push(event);
  }

  socket.once('close', () => {
    for (const { reject } of waiting.values()) {
      reject(
        new CuvetteError(
          'interpreter_failed',
          'The interpreter ended before it answered; the next call starts a new one.',
        ),
      );
    }
    waiting.clear();
  });

  const interpreter: LiveInterpreter = {
    state,
    onEvent(listener) {
      onEvent = listener;
      for (const event of early) listener(event);
      early = [];
    },
    onLost: (listener) => void socket.once('close', listener),
    onIdleDeath(listener) {
      onIdleDeath = listener;
    },
    execute: (request) => send({ op: 'execute', ...request }),
    interrupt: (id, why) => send({ op: 'interrupt', id, reason: why }),
    proceed: () => send({ op: 'continue' }),
    acknowledge(seq) {
      acknowledged = Math.max(seq, acknowledged ?? 0);
      timer ??= setTimeout(send, ACKNOWLEDGE_WITHIN_MS);
    },
    answerInstall: (module, answer) => send({ op: 'answer', name: module, ...answer }),
    async variables(): Promise<Variable[]> {
      const answer = await ask('variables');
      return answer.ev === 'variables' ? answer.variables : [];
    },
    async look(request, signal) {
      const isSearch = request.sort !== undefined || Boolean(request.filter);
      return parsed(
        valueViewSchema,
        await question('inspect', request, isSearch ? SEARCH_SECONDS : LOOK_SECONDS, signal),
      );
    },
    async complete(code, cursor, signal) {
      // Python counts a character of two units as one.
      const place = [...code.slice(0, cursor)].length;
      const answer = await question('complete', { code, cursor: place }, COMPLETE_SECONDS, signal);
      const { matches, start, end } = parsed(completionSchema, answer);
      const units = (characters: number) => [...code].slice(0, characters).join('').length;
      return { matches, start: units(start), end: units(end) };
    },
    async reset() {
      // Another worker of the same keeper would be of the earlier version, too.
      if (hello.asks === undefined) return this.stop();
      await ask('reset');
    },
    leave(linger, owner) {
      send({ op: 'leave', linger, owner: owner && [owner.pid, owner.started] });
      lines.end();
    },
    stop() {
      return new Promise((resolve) => {
        if (socket.closed) return resolve();
        socket.once('close', () => resolve());
        send({ op: 'stop' });
      });
    },
  };
  return { interpreter, handle };
}

function outdated(): CuvetteError {
  return new CuvetteError(
    'interpreter_outdated',
    'An earlier version of Cuvette has started this interpreter, which cannot do that yet. Restart the interpreter; its variables are lost.',
  );
}

type Problem = NonNullable<Extract<DriverMessage, { ev: 'answered' }>['problem']>;

const PROBLEMS: Record<Problem['code'], ErrorCode> = {
  missing: 'unknown_variable',
  invalid: 'invalid_input',
  timeout: 'unreadable_value',
  failed: 'unreadable_value',
  died: 'unreadable_value',
  busy: 'session_busy',
};

function problemError({ code, message }: Problem): CuvetteError {
  return new CuvetteError(PROBLEMS[code], message);
}

/** Code of the user's can write to the channel, so what comes from there is not relied on. */
function parsed<Schema extends z.ZodType>(schema: Schema, answer: unknown): z.infer<Schema> {
  const { success, data } = schema.safeParse(answer);
  if (success) return data;
  throw new CuvetteError('interpreter_failed', 'The interpreter gave an answer that makes no sense. Restart it.');
}
