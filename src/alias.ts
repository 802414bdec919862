/** Runs a command of Cuvette under another program's name: arguments and messages are those of the command itself. */

import { fileURLToPath } from 'node:url';

export async function runAs(command: string): Promise<void> {
  const main = new URL('main.js', import.meta.url);
  process.argv.splice(1, 1, fileURLToPath(main), command);
  await import(main.href);
}
