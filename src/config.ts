/**
 * Defines every setting in one schema, with its names. A flag overrides the environment, the environment overrides the file, and the file
 * overrides the default.
 */

import { existsSync, readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { dirname, join, resolve } from 'node:path';
import * as z from 'zod';
import { CuvetteError, messageOf } from './errors.ts';

const FILE_NAME = 'cuvette.json';
const MIB = 1024 * 1024;
const GIB = 1024 * MIB;
const DAY = 86_400;

interface Names {
  /** Variables of the environment; the first one that is set counts. */
  environment: string[];
  /** A secret is never shown. A path is meant from where it was written. A switch is a flag without a value. */
  kind?: 'secret' | 'path' | 'switch';
}

const names = z.registry<Names>();

const shared = {
  /** The Python that the builtin interpreter is made from; found on PATH if not given. */
  python: named(text().optional(), ['CUVETTE_PYTHON']),
  autoInstall: named(onOff().default(true), ['CUVETTE_AUTO_INSTALL'], 'switch'),
  /** Seconds that a call may run unless it says otherwise; 0 for no limit. */
  timeout: named(number(0).default(300), ['CUVETTE_TIMEOUT', 'EXECUTION_TIMEOUT']),
  /** Characters of output in an answer; the rest is kept on disk. */
  outputLimit: named(whole(1000).default(25_000), ['CUVETTE_OUTPUT_LIMIT']),
  /** Characters that one execution may print before it is ended. */
  maxOutput: named(whole(1000).default(100_000_000), ['CUVETTE_MAX_OUTPUT']),
  /** Seconds that an interpreter waits for its server to come back. */
  linger: named(number(1).default(3600), ['CUVETTE_LINGER']),
  /** Seconds after which a server started in the background ends, if nobody uses it. 0: never. */
  idle: named(number(0).default(0), ['CUVETTE_IDLE']),
  /** Whether code is confined: where the machine can, always, or not. `cuvette mcp` confines only if `on`. */
  sandbox: named(z.enum(['auto', 'on', 'off']).default('auto'), ['CUVETTE_SANDBOX']),
  /** For confined code: `none`, `allow`, or the hosts that it may reach. */
  network: named(network().default('none'), ['CUVETTE_NETWORK']),
  /** Bytes of memory for each confined session; 0 for no limit. */
  sessionMemory: named(size(0).default(2 * GIB), ['CUVETTE_SESSION_MEMORY']),
  /** Processes and threads of each confined session; 0 for no limit. */
  sessionProcesses: named(whole(0).default(256), ['CUVETTE_SESSION_PROCESSES']),
  /** Processors for each confined session; 0 for all. */
  sessionCpus: named(whole(0).default(0), ['CUVETTE_SESSION_CPUS']),
  /** Files that each process of a confined session may hold open. */
  sessionOpenFiles: named(whole(0).default(4096), ['CUVETTE_SESSION_OPEN_FILES']),
  /** Bytes of files that one session may hold; 0 for no limit. */
  sessionQuota: named(size(0).default(10 * GIB), ['CUVETTE_SESSION_QUOTA']),
  /** Files and folders of each confined session; 0 for no limit. */
  sessionFileCount: named(whole(0).default(200_000), ['CUVETTE_SESSION_FILE_COUNT']),
  /** Whether names, addresses and tokens of labs are kept for the next process. */
  store: named(onOff().default(true), ['CUVETTE_STORE'], 'switch'),
  /** Which tools agents are shown: those for code and the way into the lab, whose others follow when it is asked for; code alone; or all. */
  tools: named(z.enum(['auto', 'code', 'all']).default('auto'), ['CUVETTE_TOOLS']),
  /** Whether answers over MCP have their fields beside the text, which clients then show to the model in its place. */
  structured: named(onOff().default(false), ['CUVETTE_STRUCTURED'], 'switch'),
  logLevel: named(z.enum(['trace', 'debug', 'info', 'warn', 'error', 'silent']).default('warn'), ['CUVETTE_LOG_LEVEL']),
};

/** What only the HTTP service has a use for. */
const service = {
  host: named(host().default('127.0.0.1'), ['CUVETTE_HOST', 'HOST']),
  /** 0: any that is free. */
  port: named(whole(0, 65_535).default(8000), ['CUVETTE_PORT', 'PORT']),
  apiKey: named(apiKey().optional(), ['CUVETTE_API_KEY', 'CODE_INTERPRETER_API_KEY'], 'secret'),
  /** Stands in the URL, as /k/SECRET/v1, for clients that cannot send a header. */
  pathSecret: named(pathSecret().optional(), ['CUVETTE_PATH_SECRET'], 'secret'),
  /** PEM, or the path of a file with it. */
  jwtPublicKey: named(text().optional(), ['CUVETTE_JWT_PUBLIC_KEY', 'CODEAPI_JWT_PUBLIC_KEY'], 'path'),
  jwtKid: named(text().optional(), ['CUVETTE_JWT_KID', 'CODEAPI_JWT_KID']),
  /** A URL, or the path of a file. */
  jwksUrl: named(text().optional(), ['CUVETTE_JWKS_URL', 'CODEAPI_JWT_JWKS_URL'], 'path'),
  jwtIssuer: named(text().default('librechat'), ['CUVETTE_JWT_ISSUER', 'CODEAPI_JWT_ISSUER']),
  jwtAudience: named(text().default('codeapi'), ['CUVETTE_JWT_AUDIENCE', 'CODEAPI_JWT_AUDIENCE']),
  maxSessions: named(whole(1).default(50), ['CUVETTE_MAX_SESSIONS', 'MAX_SESSIONS']),
  /** Seconds without use after which a session's interpreters are ended. */
  sessionIdle: named(number(1).default(3600), ['CUVETTE_SESSION_IDLE']),
  /** Seconds after which a session ends, used or not. */
  sessionAge: named(number(1).default(DAY), ['CUVETTE_SESSION_AGE']),
  /** Seconds that files are kept. LibreChat counts on a day. */
  keepFiles: named(number(DAY).default(2 * DAY), ['CUVETTE_KEEP_FILES']),
  uploadsDir: named(text().optional(), ['CUVETTE_UPLOADS_DIR', 'UPLOADS_DIR'], 'path'),
  notebooksDir: named(text().optional(), ['CUVETTE_NOTEBOOKS_DIR', 'NOTEBOOKS_DIR'], 'path'),
  bashStrict: named(onOff().default(false), ['CUVETTE_BASH_STRICT', 'BASH_STRICT_MODE'], 'switch'),
  corsOrigins: named(origins().default([]), ['CUVETTE_CORS_ORIGINS', 'CORS_ALLOW_ORIGINS']),
  logRequests: named(onOff().default(false), ['CUVETTE_LOG_REQUESTS', 'LOG_REQUESTS'], 'switch'),
  /** What callers may attach as a lab: demo, folders, Hugging Face ids, URLs. Without a key, labs at URLs too. */
  labEndpoints: named(list().optional(), ['CUVETTE_LAB_ENDPOINTS']),
  /** Bytes of a request that is not an upload. */
  maxBody: named(size(1024).default(64 * MIB), ['CUVETTE_MAX_BODY']),
  /** Bytes of one uploaded file. */
  maxUpload: named(size(1).default(2 * GIB), ['CUVETTE_MAX_UPLOAD']),
  /** Seconds of silence after which a caller who waits is sent a sign of life. */
  keepAlive: named(number(0.1).default(15), ['CUVETTE_KEEP_ALIVE']),
  /** Executions a minute for each principal; 0 for no limit. */
  rateLimit: named(whole(0).default(0), ['CUVETTE_RATE_LIMIT']),
  /** Executions at once for each principal; 0 for no limit. */
  maxRunning: named(whole(0).default(0), ['CUVETTE_MAX_RUNNING']),
  /** MiB of memory for a program that is not Python; 0 for no limit. */
  programMemory: named(number(0).default(0), ['CUVETTE_PROGRAM_MEMORY_MB', 'SUBPROCESS_MAX_MEMORY_MB']),
  /** Seconds of processor time for a program that is not Python; 0 for no limit. */
  programCpu: named(number(0).default(0), ['CUVETTE_PROGRAM_CPU_SECONDS', 'SUBPROCESS_MAX_CPU_SECONDS']),
};

const schema = z.object({ ...shared, ...service });

export type Config = z.infer<typeof schema>;

interface Setting {
  /** Also its key in a file. */
  name: keyof Config;
  /** Without dashes in front. */
  flag: string;
  variables: string[];
  kind: Names['kind'];
  isService: boolean;
}

export const SETTINGS: Setting[] = schema.keyof().options.map((name) => ({
  name,
  flag: name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`),
  variables: names.get(schema.shape[name])?.environment ?? [],
  kind: names.get(schema.shape[name])?.kind,
  isService: name in service,
}));

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

/** Flags are given by the settings' names: `{ maxSessions: '5' }`. */
export function readConfig(
  flags: Record<string, unknown>,
  env: NodeJS.ProcessEnv = process.env,
  file?: ConfigFile,
): Config {
  return parse(gather(flags, env, file));
}

/** Every setting with its value, and where that came from; secrets are only said to be set. */
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

/** The file that was named, which must be there; else the one in the folder, if there is one. */
export function readConfigFile(named: string | undefined, folder?: string): ConfigFile | undefined {
  const path = named ? resolve(named) : folder && join(folder, FILE_NAME);
  if (!path || (!named && !existsSync(path))) return undefined;
  const values = readJson(path);
  const unknown = Object.keys(values).filter((key) => !SETTINGS.some(({ name }) => name === key));
  if (unknown.length === 0) return { path, values };
  throw new CuvetteError(
    'invalid_input',
    `${path} has what is no setting: ${unknown.join(', ')}. The settings are: ${SETTINGS.map(({ name }) => name).join(', ')}.`,
  );
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
 * Two variables are written by others too: Kubernetes sets CUVETTE_PORT=tcp://… in every container if there is a
 * service with the name cuvette, and conda and csh have something else than an address in HOST.
 */
function isSet(variable: string, value: string | undefined): boolean {
  if (value === undefined || value === '') return false;
  if (variable === 'CUVETTE_PORT') return !value.startsWith('tcp://');
  if (variable === 'HOST') return value === 'localhost' || isIP(withoutBrackets(value)) !== 0;
  return true;
}

/** A key in PEM and a URL stay what they are. */
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
  const parsed = schema.safeParse(Object.fromEntries([...given].map(([name, { value }]) => [name, value])));
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

function flagOf({ name, flag }: Setting): string {
  return schema.shape[name].safeParse(undefined).data === true ? `--no-${flag}` : `--${flag}`;
}

function shown({ kind }: Setting, value: Config[keyof Config]): SettingRow['value'] {
  if (value === undefined) return null;
  if (kind === 'secret') return '(set)';
  return typeof value === 'string' && isPem(value) ? '(PEM)' : value;
}

function named<T extends z.ZodType>(type: T, environment: string[], kind?: Names['kind']): T {
  names.add(type, { environment, ...(kind && { kind }) });
  return type;
}

function text() {
  return z.string().trim().min(1, 'it is empty');
}

function onOff() {
  return z.union([z.boolean(), z.stringbool()], { error: 'expected true or false' });
}

function number(min: number) {
  return z.preprocess(toNumber, z.number('expected a number').min(min, `must be at least ${min}`));
}

function whole(min: number, max = Number.MAX_SAFE_INTEGER) {
  return z.preprocess(
    toNumber,
    z
      .number('expected a number')
      .int('expected a whole number')
      .min(min, `must be at least ${min}`)
      .max(max, `must be at most ${max}`),
  );
}

function toNumber(value: unknown): unknown {
  return typeof value === 'string' && value.trim() !== '' && Number.isFinite(Number(value)) ? Number(value) : value;
}

const UNITS = ['', 'k', 'm', 'g', 't'];

function size(min: number) {
  return z.preprocess(toBytes, z.number('expected bytes, such as 1048576, 10MB or 2GiB').int().min(min));
}

function toBytes(value: unknown): unknown {
  const [, digits, unit = '', binary] =
    typeof value === 'string' ? (/^\s*(\d+(?:\.\d+)?)\s*(?:([kmgt])?(i)?b)?\s*$/i.exec(value) ?? []) : [];
  if (digits === undefined) return value;
  return Math.floor(Number(digits) * (binary ? 1024 : 1000) ** UNITS.indexOf(unit.toLowerCase()));
}

function network() {
  return z.preprocess(
    (value) => (typeof value === 'string' && value !== 'none' && value !== 'allow' ? value.split(',') : value),
    z.union([z.enum(['none', 'allow']), z.array(text())], {
      error: 'expected none, allow, or hosts such as packages.example.org,files.example.org',
    }),
  );
}

function list() {
  return z.preprocess(
    (value) => (typeof value === 'string' ? value.split(',').filter((part) => part.trim() !== '') : value),
    z.array(text()),
  );
}

function host() {
  return text()
    .transform(withoutBrackets)
    .refine((value) => isIP(value) !== 0 || /^[\w.-]+$/.test(value), 'expected a name or an address, without a port');
}

function withoutBrackets(host: string): string {
  return host.replace(/^\[(.*)\]$/, '$1');
}

function apiKey() {
  return text().regex(/^[\x20-\x7e]+$/, 'it must have plain characters only, as a header can carry them');
}

function pathSecret() {
  return z.string().regex(/^[\w-]{16,}$/, 'it must have at least 16 characters of A-Z, a-z, 0-9, _ and -');
}

function origins() {
  return z.preprocess(
    (value) => (typeof value === 'string' ? value.split(',').filter((part) => part.trim() !== '') : value),
    z.array(
      text()
        .transform(toOrigin)
        .refine(
          (origin) => origin === '*' || /^[a-z][a-z0-9+.-]*:\/\/[^/?#\s]+$/.test(origin),
          'expected origins, such as https://chat.example.com, or *',
        ),
    ),
  );
}

/** As a browser writes it: small letters, no default port, no slash at the end. */
function toOrigin(value: string): string {
  const bare = value.replace(/\/$/, '').toLowerCase();
  return /^https?:\/\/[^/?#]+$/.test(bare) && URL.canParse(bare) ? new URL(bare).origin : bare;
}
