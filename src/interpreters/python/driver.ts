/** Connects to one session's keeper: speaks the driver's protocol, and hides it behind `LiveInterpreter`. */

import { existsSync, readdirSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { CuvetteError } from '../../errors.ts';
import { createLineWriter, readLines } from '../../json-lines.ts';
import type { InterpreterEvent, LiveInterpreter, Variable } from '../interpreter.ts';
import { type DriverMessage, type Hello, parseMessage, toEvent } from './messages.ts';

const ACKNOWLEDGE_WITHIN_MS = 20;

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

  function ask(op: 'variables' | 'reset'): Promise<DriverMessage> {
    questions += 1;
    const id = `${op}-${questions}`;
    return new Promise((resolve, reject) => {
      waiting.set(id, { resolve, reject });
      send({ op, id });
    });
  }

  function handle(message: DriverMessage): void {
    if (message.ev === 'restarted') {
      state.generation = message.generation;
      if (message.idle) onIdleDeath?.(message.death.signal ?? `exit status ${message.death.exit}`);
      return;
    }
    if (message.ev === 'variables' || message.ev === 'reset') {
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
    async reset() {
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
