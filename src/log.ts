/** Creates the log, which goes to standard error: standard output belongs to the protocol or to the program that runs. */

import { type Logger, pino } from 'pino';

export type { Logger };

export function createLog(level: string): Logger {
  return pino({ level, base: { pid: process.pid } }, pino.destination({ dest: 2, sync: true }));
}
