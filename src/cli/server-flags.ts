/** Parses the flags of `mcp`, `serve` and `doctor`, most of which are settings, and reads the settings by them. */

import { realpathSync } from 'node:fs';
import type { ParseArgsConfig } from 'node:util';
import {
  type Config,
  explainConfig,
  mistypedVariables,
  readConfig,
  readConfigFile,
  type SettingRow,
} from '../config.ts';
import { CuvetteError } from '../errors.ts';
import { SETTINGS } from '../settings.ts';
import { parseFlags, SERVE, SERVER, SERVICE } from './command-flags.ts';

export interface ServerFlags {
  config: Config;
  project: string;
  /** The path of the file that settings were read from. */
  configFile: string | undefined;
  /** Whether `serve` shows the settings and ends. */
  printConfig: boolean;
  json: boolean;
  /** Whether `serve` opens the workbench in a browser. */
  open: boolean;
  explain(): SettingRow[];
  /** Environment variables that look like mistyped settings. */
  mistyped: string[];
}

export function parseServerFlags(
  args: string[],
  command: 'mcp' | 'serve' = 'mcp',
  environment: NodeJS.ProcessEnv = process.env,
): ServerFlags {
  const isService = command === 'serve';
  const { values } = parseFlags({ args, allowNegative: true, options: flagOptions(isService) });
  const project = folder(text(values.project) ?? process.cwd());
  // The file of a folder could name a program to run, so it is read only where a person starts the server.
  const isAttended = isService && !(Number(values.idle ?? environment.CUVETTE_IDLE) > 0);
  const file = readConfigFile(text(values.config) ?? environment.CUVETTE_CONFIG, isAttended ? project : undefined);
  const flags = Object.fromEntries(SETTINGS.map(({ name, flag }) => [name, values[flag]]));
  const env = isService ? environment : withoutService(environment);
  return {
    config: readConfig(flags, env, file),
    project,
    configFile: file?.path,
    printConfig: values['print-config'] === true,
    json: values.json === true,
    open: values.open === true,
    explain: () => explainConfig(flags, env, file),
    mistyped: mistypedVariables(env),
  };
}

function flagOptions(isService: boolean): NonNullable<ParseArgsConfig['options']> {
  const type = (isSwitch: boolean) => ({ type: isSwitch ? ('boolean' as const) : ('string' as const) });
  const settings = SETTINGS.filter((setting) => isService || !setting.isService);
  return {
    ...Object.fromEntries(settings.map(({ flag, kind }) => [flag, type(kind === 'switch')])),
    ...SERVER,
    ...(isService && { ...SERVICE, ...SERVE }),
  };
}

/** Leaves out the service's variables, because an agent's environment may have a PORT or LOG_REQUESTS meant for others. */
function withoutService(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const names = SETTINGS.filter(({ isService }) => isService).flatMap(({ variables }) => variables);
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !names.includes(name)));
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function folder(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    throw new CuvetteError('invalid_input', `The project folder ${path} does not exist.`, { cause: error });
  }
}
