/** The flags that `mcp` and `serve` share, made from the settings, and what more `serve` takes. */

import { realpathSync } from 'node:fs';
import type { ParseArgsConfig } from 'node:util';
import { type Config, explainConfig, readConfig, readConfigFile, SETTINGS, type SettingRow } from '../config.ts';
import { CuvetteError } from '../errors.ts';
import { parseFlags } from './command-flags.ts';

export interface ServerFlags {
  config: Config;
  project: string;
  /** The file that settings were read from. */
  configFile: string | undefined;
  /** `serve` is to show the settings, and end. */
  printConfig: boolean;
  json: boolean;
  explain(): SettingRow[];
}

export function parseServerFlags(
  args: string[],
  command: 'mcp' | 'serve' = 'mcp',
  environment: NodeJS.ProcessEnv = process.env,
): ServerFlags {
  const isService = command === 'serve';
  const { values } = parseFlags({ args, allowNegative: true, options: flagOptions(isService) });
  const project = folder(text(values.project) ?? process.cwd());
  // Whoever wrote the files of a folder must not decide what runs there when an agent or a shell starts a server in it.
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
    explain: () => explainConfig(flags, env, file),
  };
}

function flagOptions(isService: boolean): NonNullable<ParseArgsConfig['options']> {
  const type = (isSwitch: boolean) => ({ type: isSwitch ? ('boolean' as const) : ('string' as const) });
  const settings = SETTINGS.filter((setting) => isService || !setting.isService);
  return {
    ...Object.fromEntries(settings.map(({ flag, kind }) => [flag, type(kind === 'switch')])),
    project: type(false),
    config: type(false),
    ...(isService && { 'print-config': type(true), json: type(true) }),
  };
}

/** An agent's environment may have a PORT or a LOG_REQUESTS that was never meant for us. */
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
