/** `cuvette run` runs code in the agent's own live session and behaves like a program of its own: output, exit code, Ctrl-C. */

import { readFileSync } from 'node:fs';
import { CuvetteError, messageOf } from '../errors.ts';
import { callBridge } from '../surfaces/bridge/client.ts';
import type { BridgeEvent, BridgeRequest } from '../surfaces/bridge/protocol.ts';
import { parseFlags, RUN } from './command-flags.ts';
import { findServer } from './find-server.ts';

const BROKEN_PIPE = 141;

export async function main(args: string[]): Promise<never> {
  const { values, positionals } = parseFlags({ args, allowPositionals: true, options: RUN });
  const code = values.code ?? readCode(positionals[0]);
  const server = await findServer({ start: values.start ?? false, server: values.server });
  const request: BridgeRequest = {
    do: 'execute',
    of: server.of,
    code,
    session: values.session,
    interpreter: values.interpreter,
    timeout: values.timeout === undefined ? undefined : seconds(values.timeout),
  };
  if (process.env.CUVETTE_SESSION && (values.session ?? process.env.CUVETTE_SESSION) === process.env.CUVETTE_SESSION)
    refuseInside(server.socket);

  let running: Extract<BridgeEvent, { type: 'started' }> | undefined;
  let exitCode = 70;
  // Ctrl-C interrupts the code and not this client; a second one makes the server end it.
  process.on('SIGINT', () => {
    if (!running) process.exit(130);
    const { session, execution } = running;
    const input = { session, execution };
    callBridge(server.socket, { do: 'call', of: server.of, tool: 'interrupt', input }, () => {}).catch(() =>
      process.exit(130),
    );
  });
  // A reader that goes away, as `head` does, ends the client, and with it the code.
  process.stdout.on('error', () => process.exit(BROKEN_PIPE));
  await callBridge(server.socket, request, (event) => {
    if (event.type === 'started') running = event;
    if (event.type === 'text') process[event.to].write(event.text);
    if (event.type !== 'done') return;
    exitCode = event.exitCode;
    for (const note of event.notes) process.stderr.write(`[${note}]\n`);
  });
  await Promise.all([written(process.stdout), written(process.stderr)]);
  process.exit(exitCode); // An orderly end of Node would only take time.
}

/** Waits until everything that was written to a pipe is in it. */
function written(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => stream.write('', () => resolve()));
}

function readCode(file: string | undefined): string {
  if ((file === undefined || file === '-') && process.stdin.isTTY) {
    throw new CuvetteError(
      'invalid_input',
      "Nothing to run. Give a file, or code on standard input:\n  cuvette run <<'PY'\n  print('hello')\n  PY",
    );
  }
  try {
    return readFileSync(file === undefined || file === '-' ? 0 : file, 'utf8');
  } catch (error) {
    throw new CuvetteError('invalid_input', `${file ?? 'Standard input'} cannot be read: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

function seconds(text: string): number {
  const value = Number(text);
  if (Number.isFinite(value) && value >= 0) return value;
  throw new CuvetteError('invalid_input', `--timeout takes seconds, not ${text}.`);
}

/** Refuses `cuvette run` by the code of a session in that same session, which would wait for itself. */
function refuseInside(socket: string): never {
  throw new CuvetteError(
    'inside_session',
    `This shell was started by session ${process.env.CUVETTE_SESSION} itself, which would wait for itself (${socket}). Call the code directly, or use another session with --session.`,
  );
}
