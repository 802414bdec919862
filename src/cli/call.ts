/** `cuvette call` calls any of the agent's tools from the shell. */

import { CuvetteError, messageOf } from '../errors.ts';
import { callBridge } from '../surfaces/bridge/client.ts';
import { CALL, parseFlags } from './command-flags.ts';
import { findServer } from './find-server.ts';

export async function main(args: string[]): Promise<number> {
  const { values, positionals } = parseFlags({ args, allowPositionals: true, options: CALL });
  const [tool, input = '{}'] = positionals;
  if (!tool)
    throw new CuvetteError(
      'invalid_input',
      'Which tool? For example: cuvette call list_vars, or: cuvette call execute \'{"code": "1 + 1"}\'',
    );
  const server = await findServer({ start: values.start ?? false, server: values.server });
  let isError = false;
  await callBridge(server.socket, { do: 'call', of: server.of, tool, input: parseJson(input) }, (event) => {
    if (event.type !== 'answer') return;
    isError = event.isError;
    process.stdout.write(`${values.json ? JSON.stringify(event.structured, null, 2) : event.text}\n`);
  });
  return isError ? 1 : 0;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new CuvetteError('invalid_input', `The arguments are not JSON: ${messageOf(error)}`, { cause: error });
  }
}
