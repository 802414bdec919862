/** Another name for a command of Cuvette. The program goes on as if it had been called by its own name, which is how it tells users to call it. */

import { fileURLToPath } from 'node:url';

export async function runAs(command: string): Promise<void> {
  const main = new URL('main.js', import.meta.url);
  process.argv.splice(1, 1, fileURLToPath(main), command);
  await import(main.href);
}
