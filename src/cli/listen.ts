/** Makes a server listen on an address, with an error that says what to do. */

import type { Server } from 'node:http';
import { CuvetteError } from '../errors.ts';

/** Takes any free port if the default one is in use; a port that the user chose must be free. */
export async function listen(
  server: Server,
  { host, port }: { host: string; port: number },
  isPortChosen: boolean,
): Promise<void> {
  const attempt = (wanted: number) =>
    new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(wanted, host, () => {
        server.off('error', reject);
        resolve();
      });
    });
  try {
    await attempt(port);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EADDRINUSE' && !isPortChosen) return attempt(0);
    const why = code === 'EADDRINUSE' ? 'another program uses it' : code === 'EACCES' ? 'it is not yours to use' : code;
    throw new CuvetteError(
      'invalid_input',
      `The service cannot listen on ${host}, port ${port}: ${why}. Choose another with --port (CUVETTE_PORT), or --port 0 for any.`,
      { cause: error },
    );
  }
}
