/** The shell client's side of the bridge: sends a request over the socket and reads the lines of the answer. */

import { request as httpRequest } from 'node:http';
import { CuvetteError, type ErrorCode } from '../../errors.ts';
import { readLines } from '../../json-lines.ts';

/** Calls back with each line of the answer; resolves with the whole of it where it is no stream. */
export function callBridge(
  socketPath: string,
  path: string,
  body: unknown,
  onLine?: (line: string) => void,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      { socketPath, path, method: 'POST', headers: { 'content-type': 'application/json' } },
      (response) => {
        const isStream = response.headers['content-type'] === 'application/x-ndjson';
        const chunks: Buffer[] = [];
        if (isStream && onLine) readLines(response, onLine);
        else response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.once('end', () => {
          const text = Buffer.concat(chunks).toString('utf8');
          if (response.statusCode === 200) return resolve(text);
          const { error } = JSON.parse(text) as { error: { code: ErrorCode; message: string } };
          reject(new CuvetteError(error.code, error.message));
        });
        response.once('error', reject);
      },
    );
    request.once('error', (error) =>
      reject(
        new CuvetteError(
          'no_server',
          `The server's socket ${socketPath} does not answer (${error.message}). Its server may have just ended; try again.`,
          { cause: error },
        ),
      ),
    );
    request.end(JSON.stringify(body));
  });
}
