/** The flags that `mcp` and `serve` share. */

import { realpathSync } from 'node:fs';
import { type Config, readConfig } from '../config.ts';
import { CuvetteError } from '../errors.ts';
import { parseFlags } from './parse-flags.ts';

export function parseServerFlags(args: string[]): { config: Config; project: string } {
  const { values } = parseFlags({
    args,
    options: {
      python: { type: 'string' },
      'no-auto-install': { type: 'boolean' },
      timeout: { type: 'string' },
      'output-limit': { type: 'string' },
      'max-output': { type: 'string' },
      linger: { type: 'string' },
      idle: { type: 'string' },
      'log-level': { type: 'string' },
      project: { type: 'string' },
    },
  });
  const flags = {
    python: values.python,
    autoInstall: values['no-auto-install'] ? false : undefined,
    timeout: values.timeout,
    outputLimit: values['output-limit'],
    maxOutput: values['max-output'],
    linger: values.linger,
    idle: values.idle,
    logLevel: values['log-level'],
  };
  return { config: readConfig(flags), project: folder(values.project ?? process.cwd()) };
}

function folder(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    throw new CuvetteError('invalid_input', `The project folder ${path} does not exist.`, { cause: error });
  }
}
