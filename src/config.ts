/**
 * Reads the settings' values: a flag comes before the environment, the environment before the file, the file before the default.
 */

import { existsSync, readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { dirname, join, resolve } from 'node:path';
import * as z from 'zod';
import { CuvetteError, messageOf } from './errors.ts';
import { nearestName } from './nearest-name.ts';
import { type Config, flagOf, SETTINGS, type Setting, settingsSchema, withoutBrackets } from './settings.ts';

export type { Config };

const FILE_NAME = 'cuvette.json';
/** Variables of Cuvette's that are no settings. */
const OTHER_VARIABLES = ['HOME', 'CONFIG', 'SESSION', 'LAB_TOKEN', 'TORCH_PYTHON', 'TOKEN', 'UI_TOKEN'].map(
  (name) => `CUVETTE_${name}`,
);

type Source = 'flag' | `environment ${string}` | `file ${string}` | 'default';

export interface SettingRow {
  setting: string;
  value: string | number | boolean | string[] | null;
  source: Source;
  flag: string;
  variables: string[];
}

export interface ConfigFile {
  path: string;
  values: Record<string, unknown>;
}

/** `flags` holds the values of flags by the names of their settings: `{ maxSessions: '5' }`. */
export function readConfig(
  flags: Record<string, unknown>,
  env: NodeJS.ProcessEnv = process.env,
  file?: ConfigFile,
): Config {
  return parse(gather(flags, env, file));
}

/** Returns every setting with its value and where that came from; of a secret, only that it is set. */
export function explainConfig(
  flags: Record<string, unknown>,
  env: NodeJS.ProcessEnv = process.env,
  file?: ConfigFile,
): SettingRow[] {
  const given = gather(flags, env, file);
  const config = parse(given);
  return SETTINGS.map((setting) => ({
    setting: setting.name,
    value: shown(setting, config[setting.name]),
    source: given.get(setting.name)?.source ?? 'default',
    flag: flagOf(setting),
    variables: setting.variables,
  }));
}

/** Reads the named file, which must exist; else the one in the folder, if there is one. */
export function readConfigFile(named: string | undefined, folder?: string): ConfigFile | undefined {
  const path = named ? resolve(named) : folder && join(folder, FILE_NAME);
  if (!path || (!named && !existsSync(path))) return undefined;
  const values = readJson(path);
  const unknown = Object.keys(values).filter((key) => !SETTINGS.some(({ name }) => name === key));
  if (unknown.length === 0) return { path, values };
  const names = SETTINGS.map(({ name }) => name);
  const told = unknown.map((key) => withNearest(key, names));
  throw new CuvetteError(
    'invalid_input',
    `${path} has what is no setting: ${told.join(', ')}. The settings are: ${names.join(', ')}.`,
  );
}

/** Names the variables that look like a mistyped setting. Others are ignored, because the environment belongs to all programs. */
export function mistypedVariables(env: NodeJS.ProcessEnv): string[] {
  const known = [...SETTINGS.flatMap(({ variables }) => variables), ...OTHER_VARIABLES];
  return Object.keys(env)
    .filter((key) => key.startsWith('CUVETTE_') && !known.includes(key) && nearestName(key, known))
    .map((key) => withNearest(key, known));
}

function withNearest(name: string, known: string[]): string {
  const meant = nearestName(name, known);
  return meant ? `${name} (did you mean ${meant}?)` : name;
}

function readJson(path: string): Record<string, unknown> {
  try {
    return z.record(z.string(), z.unknown()).parse(JSON.parse(readFileSync(path, 'utf8')));
  } catch (error) {
    const reason = error instanceof z.ZodError ? 'it is not an object' : messageOf(error);
    throw new CuvetteError('invalid_input', `The settings in ${path} cannot be read: ${reason}. It must be JSON.`, {
      cause: error,
    });
  }
}

type Given = Map<keyof Config, { value: unknown; source: Source }>;

function gather(flags: Record<string, unknown>, env: NodeJS.ProcessEnv, file: ConfigFile | undefined): Given {
  const given: Given = new Map();
  for (const { name, variables, kind } of SETTINGS) {
    const set = (value: unknown, source: Source, folder = process.cwd()) =>
      given.set(name, { value: kind === 'path' ? fromFolder(value, folder) : value, source });
    const variable = variables.find((key) => isSet(key, env[key]));
    if (flags[name] !== undefined) set(flags[name], 'flag');
    else if (variable) set(env[variable], `environment ${variable}`);
    else if (file && name in file.values) set(file.values[name], `file ${file.path}`, dirname(file.path));
  }
  return given;
}

/**
 * Ignores two variables that others write, too: Kubernetes sets CUVETTE_PORT=tcp://… in every container if there is a
 * service with the name cuvette, and conda and csh have something else than an address in HOST.
 */
function isSet(variable: string, value: string | undefined): boolean {
  if (value === undefined || value === '') return false;
  if (variable === 'CUVETTE_PORT') return !value.startsWith('tcp://');
  if (variable === 'HOST') return value === 'localhost' || isIP(withoutBrackets(value)) !== 0;
  return true;
}

/** Resolves a path from the folder; a key in PEM and a URL stay as they are. */
function fromFolder(value: unknown, folder: string): unknown {
  if (typeof value !== 'string' || value.trim() === '' || isPem(value) || isUrl(value)) return value;
  return resolve(folder, value.trim().replace(/^@/, ''));
}

export function isPem(value: string): boolean {
  return value.trim().startsWith('-----BEGIN');
}

export function isUrl(value: string): boolean {
  return /^https?:\/\//i.test(value);
}

function parse(given: Given): Config {
  const parsed = settingsSchema.safeParse(Object.fromEntries([...given].map(([name, { value }]) => [name, value])));
  if (parsed.success) return parsed.data;
  const sentences = parsed.error.issues.map(({ path, message }) => {
    const setting = SETTINGS.find(({ name }) => name === path[0]);
    if (!setting) return message;
    const all = [flagOf(setting), ...setting.variables, `"${setting.name}" in a file`].join(', ');
    const source = given.get(setting.name)?.source.replace(/^(flag)$/, `$1 ${flagOf(setting)}`);
    return `The setting ${setting.name} (${all}) is wrong: ${message}. It came from the ${source}.`;
  });
  throw new CuvetteError('invalid_input', sentences.join('\n'));
}

function shown({ kind }: Setting, value: Config[keyof Config]): SettingRow['value'] {
  if (value === undefined) return null;
  if (kind === 'secret') return '(set)';
  return typeof value === 'string' && isPem(value) ? '(PEM)' : value;
}
