/** Every setting, in one schema. Flags come before the environment, the environment before the defaults. */

import * as z from 'zod';
import { CuvetteError } from './errors.ts';

const flag = z.union([z.boolean(), z.stringbool()]);

const schema = z.object({
  /** The Python that the builtin interpreter is made from; found on PATH if not given. */
  python: z.string().optional(),
  autoInstall: flag.default(true),
  /** Seconds that a call may run unless it says otherwise; 0 for no limit. */
  timeout: z.coerce.number().min(0).default(300),
  /** Characters of output in an answer; the rest is kept on disk. */
  outputLimit: z.coerce.number().int().min(1000).default(25_000),
  /** Characters that one execution may print before it is ended. */
  maxOutput: z.coerce.number().int().min(1000).default(100_000_000),
  /** Seconds that an interpreter waits for its server to come back. */
  linger: z.coerce.number().min(1).default(3600),
  /** Seconds after which a server started in the background ends, if nobody uses it. 0: never. */
  idle: z.coerce.number().min(0).default(0),
  logLevel: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'silent']).default('warn'),
});

export type Config = z.infer<typeof schema>;

const ENVIRONMENT: Record<keyof Config, string[]> = {
  python: ['CUVETTE_PYTHON'],
  autoInstall: ['CUVETTE_AUTO_INSTALL'],
  timeout: ['CUVETTE_TIMEOUT', 'EXECUTION_TIMEOUT'],
  outputLimit: ['CUVETTE_OUTPUT_LIMIT'],
  maxOutput: ['CUVETTE_MAX_OUTPUT'],
  linger: ['CUVETTE_LINGER'],
  idle: ['CUVETTE_IDLE'],
  logLevel: ['CUVETTE_LOG_LEVEL'],
};

export function readConfig(flags: Record<string, unknown>, env: NodeJS.ProcessEnv = process.env): Config {
  const given: Record<string, unknown> = {};
  for (const [setting, names] of Object.entries(ENVIRONMENT)) {
    given[setting] =
      flags[setting] ?? names.map((name) => env[name]).find((value) => value !== undefined && value !== '');
  }
  const parsed = schema.safeParse(given);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const setting = String(issue?.path[0] ?? '');
  throw new CuvetteError(
    'invalid_input',
    `The setting ${setting} (${settingNames(setting)}) is wrong: ${issue?.message}.`,
  );
}

function settingNames(setting: string): string {
  const dashed = setting.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  return [`--${dashed}`, ...(ENVIRONMENT[setting as keyof Config] ?? [])].join(', ');
}
