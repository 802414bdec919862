#!/usr/bin/env node
/** Starts Cuvette: reads the command and loads only what that command needs. */

import { main as run } from './cli/run.ts';
import { CuvetteError, messageOf } from './errors.ts';

interface Command {
  main(args: string[]): Promise<number | undefined>;
}

/** `run` stands in this very file once it is built: a shell client is as fast as the number of files it loads. */
const COMMANDS: Record<string, () => Promise<Command>> = {
  run: async () => ({ main: run }),
  mcp: () => import('./cli/mcp.ts'),
  serve: () => import('./cli/serve.ts'),
  ui: () => import('./cli/ui.ts'),
  call: () => import('./cli/call.ts'),
  doctor: () => import('./cli/doctor.ts'),
  lab: () => import('./cli/lab.ts'),
  help: () => import('./cli/help.ts'),
};

const HELP = ['--help', '-h', '--version', '-v'];

async function main(): Promise<void> {
  const [first = 'help', ...args] = process.argv.slice(2);
  const isHelp = HELP.includes(first) || args.slice(0, 2).some((arg) => arg === '--help' || arg === '-h');
  const name = isHelp ? 'help' : first;
  const load = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (!load) throw new CuvetteError('invalid_input', `There is no command ${first}. Run: cuvette help`);
  const command = await load();
  process.exitCode = (await command.main(name === 'help' ? [first, ...args] : args)) ?? 0;
}

main().catch((error: unknown) => {
  process.stderr.write(`cuvette: ${messageOf(error)}\n`);
  if (!(error instanceof CuvetteError) && process.env.CUVETTE_LOG_LEVEL === 'debug')
    process.stderr.write(`${(error as Error).stack}\n`);
  process.exitCode = error instanceof CuvetteError ? error.exitCode : 70;
});
