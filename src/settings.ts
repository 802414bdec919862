/**
 * Declares every setting once: its type, default, names and a one-line description. Flags, help and docs/settings.md are made from it;
 * `config.ts` reads the values.
 */

import { isIP } from 'node:net';
import * as z from 'zod';

const MIB = 1024 * 1024;
const GIB = 1024 * MIB;
const DAY = 86_400;

interface About {
  /** What stands for the value in help, such as SECONDS; a switch has none. */
  value?: string;
  /** One line, for help and for docs/settings.md. */
  about?: string;
  /** Environment variables that count beside CUVETTE_NAME, or in its place if they begin with CUVETTE_. */
  also?: string[];
  /** What is shown where there is no default. */
  fallback?: string;
  /** A secret is never shown. A relative path is resolved from where it was written. */
  kind?: 'secret' | 'path';
}

const abouts = z.registry<About>();

/** By the title under which help and docs/settings.md show them. */
const GROUPS = {
  General: {
    python: setting(given('PATH', 'the first Python 3.9 or later on PATH'), 'the Python of the builtin interpreter'),
    preload: setting(
      modules('numpy', 'pandas', 'matplotlib.pyplot'),
      'modules that sessions find loaded, with commas between, or none',
    ),
    autoInstall: setting(onOff(true), 'install a missing package at its import'),
    timeout: setting(seconds(0, 300), 'time of a call that names none; 0 for no limit', 'EXECUTION_TIMEOUT'),
    outputLimit: setting(whole(1000, 25_000), 'characters of output in an answer; the rest is kept on disk'),
    maxOutput: setting(whole(1000, 100_000_000), 'characters that one execution may print before it is ended'),
    linger: setting(seconds(1, 3600), 'how long an interpreter waits for its server to come back'),
    idle: setting(
      seconds(0, 0),
      'serve shells alone, in the background, and end after this time without use; 0 for never',
    ),
    store: setting(onOff(true), 'keep names, addresses and tokens of labs for the next process'),
    tools: setting(
      oneOf('auto', 'code', 'all'),
      "tools that agents are shown; auto: the lab's once it is used; code: no lab",
    ),
    structured: setting(onOff(false), 'answers over MCP have their fields beside the text, for programs'),
    logLevel: setting(
      oneOf('warn', 'trace', 'debug', 'info', 'error', 'silent'),
      'trace, debug, info, warn, error or silent; to standard error',
    ),
  },
  Confinement: {
    sandbox: setting(oneOf('auto', 'on', 'off'), 'confine code; auto: serve does where the machine can, mcp does not'),
    network: setting(network(), 'what confined code may reach: none, allow, or hosts with commas between'),
    sessionMemory: setting(size(0, 2 * GIB), 'memory of all processes of a confined interpreter; 0 for no limit'),
    sessionProcesses: setting(whole(0, 256), 'processes and threads of a confined interpreter; 0 for no limit'),
    sessionCpus: setting(whole(0, 0), 'processors that a confined interpreter may use; 0 for all'),
    sessionOpenFiles: setting(whole(0, 4096), 'files that a confined process may have open; 0 for what the server may'),
    sessionQuota: setting(size(0, 10 * GIB), 'size of all files of a session; 0 for no limit'),
    sessionFileCount: setting(whole(0, 200_000), 'files and folders of a confined session; 0 for no limit'),
  },
  'Where it listens': {
    host: setting(host(), "address to listen on; any other than this machine's own needs a way of access", 'HOST'),
    port: setting(whole(0, 8000, 65_535), 'port to listen on; 0 for any that is free', 'PORT'),
  },
  'Who may come in': {
    apiKey: setting(
      apiKey(),
      'key that callers send as x-api-key or Authorization: Bearer',
      'CODE_INTERPRETER_API_KEY',
    ),
    pathSecret: setting(pathSecret(), 'secret in the URL, as in /k/SECRET/v1, for clients that send no header'),
    jwtPublicKey: setting(
      path('PEM'),
      "public key of LibreChat's tokens: PEM, or a file with it",
      'CODEAPI_JWT_PUBLIC_KEY',
    ),
    jwtKid: setting(given('ID', 'any'), '`kid` that tokens must have', 'CODEAPI_JWT_KID'),
    jwksUrl: setting(path('URL'), 'JSON Web Key Set in place of one key: a URL, or a file', 'CODEAPI_JWT_JWKS_URL'),
    jwtIssuer: setting(text('NAME', 'librechat'), '`iss` that tokens must have', 'CODEAPI_JWT_ISSUER'),
    jwtAudience: setting(text('NAME', 'codeapi'), '`aud` that tokens must have', 'CODEAPI_JWT_AUDIENCE'),
    corsOrigins: setting(
      origins(),
      'origins of web pages that may use the service, or * for all',
      'CORS_ALLOW_ORIGINS',
    ),
  },
  'Sessions and files': {
    maxSessions: setting(whole(1, 50), 'sessions with live interpreters at once', 'MAX_SESSIONS'),
    sessionIdle: setting(seconds(1, 3600), 'how long a session may be unused until its interpreters are ended'),
    sessionAge: setting(
      seconds(1, DAY),
      'how old a session may become until it is ended, as soon as nothing runs in it',
    ),
    keepFiles: setting(
      seconds(DAY, 2 * DAY),
      'how long files are kept; a day at least, because LibreChat counts on it',
    ),
    uploadsDir: setting(
      path('FOLDER'),
      'where workspaces and files are kept, in place of the data folder',
      'UPLOADS_DIR',
    ),
    notebooksDir: setting(path('FOLDER'), 'made, and told by /health; nothing is kept in it', 'NOTEBOOKS_DIR'),
    maxUpload: setting(size(1, 2 * GIB), 'size of one uploaded file'),
  },
  'The lab over HTTP': {
    labEndpoints: setting(endpoints(), 'labs that callers may attach, as a list with commas'),
  },
  'Limits and operation': {
    maxBody: setting(size(1024, 64 * MIB), 'size of a request that is not an upload'),
    rateLimit: setting(whole(0, 0), 'executions that one caller may start in any minute; 0 for no limit'),
    maxRunning: setting(whole(0, 0), 'executions that one caller may have at once; 0 for no limit'),
    keepAlive: setting(
      seconds(0.1, 15),
      'silence after which a waiting caller is sent a byte, to keep the connection alive',
    ),
    programMemory: setting(
      number('MIB', 0, 0),
      'address space of each process of a program that is not Python; 0 for no limit',
      'CUVETTE_PROGRAM_MEMORY_MB',
      'SUBPROCESS_MAX_MEMORY_MB',
    ),
    programCpu: setting(
      seconds(0, 0),
      'processor time of a program that is not Python; 0 for no limit',
      'CUVETTE_PROGRAM_CPU_SECONDS',
      'SUBPROCESS_MAX_CPU_SECONDS',
    ),
    bashStrict: setting(onOff(false), 'run bash with `set -euo pipefail`', 'BASH_STRICT_MODE'),
    logRequests: setting(
      onOff(false),
      'a line in the log for each request, without headers and secrets',
      'LOG_REQUESTS',
    ),
  },
};

export const settingsSchema = z.object({
  ...GROUPS.General,
  ...GROUPS.Confinement,
  ...GROUPS['Where it listens'],
  ...GROUPS['Who may come in'],
  ...GROUPS['Sessions and files'],
  ...GROUPS['The lab over HTTP'],
  ...GROUPS['Limits and operation'],
});

export type Config = z.infer<typeof settingsSchema>;

export interface Setting {
  /** Also its key in a file. */
  name: keyof Config;
  /** Without dashes in front. */
  flag: string;
  /** The first one that is set counts. */
  variables: string[];
  value: string;
  about: string;
  /** As people write it. */
  default: string;
  kind: About['kind'] | 'switch';
  group: string;
  /** Whether only the HTTP service has it. */
  isService: boolean;
}

export const SETTINGS: Setting[] = settingsSchema.keyof().options.map((name) => {
  const type = settingsSchema.shape[name];
  const { value = '', about = '', also = [], fallback = 'none', kind } = abouts.get(type) ?? {};
  const words = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  const own = `CUVETTE_${words.replaceAll('-', '_').toUpperCase()}`;
  const [group = ''] = Object.entries(GROUPS).find(([, settings]) => name in settings) ?? [];
  return {
    name,
    flag: words,
    variables: also[0]?.startsWith('CUVETTE_') ? also : [own, ...also],
    value,
    about,
    default: written(type.safeParse(undefined).data, value) ?? fallback,
    kind: value === '' ? 'switch' : kind,
    group,
    isService: !(name in GROUPS.General || name in GROUPS.Confinement),
  };
});

/** Returns the flag as it is typed; a switch that is on by default is shown by its negation. */
export function flagOf({ flag, kind, default: value }: Setting): string {
  return kind === 'switch' && value === 'on' ? `--no-${flag}` : `--${flag}`;
}

function written(value: Config[keyof Config], unit: string): string | undefined {
  if (typeof value === 'boolean') return value ? 'on' : 'off';
  if (unit === 'SIZE') return Number(value) % GIB === 0 ? `${Number(value) / GIB}GiB` : `${Number(value) / MIB}MiB`;
  if (value === undefined || (Array.isArray(value) && value.length === 0)) return undefined;
  return String(value);
}

function setting<T extends z.ZodType>(type: T, about: string, ...also: string[]): T {
  return describe(type, { about, also });
}

function describe<T extends z.ZodType>(type: T, more: About): T {
  abouts.add(type, { ...abouts.get(type), ...more });
  return type;
}

function line() {
  return z.string().trim().min(1, 'it is empty');
}

function text(value: string, fallback: string) {
  return describe(line().default(fallback), { value });
}

/** A text without a default. */
function given(value: string, fallback = 'none') {
  return describe(line().optional(), { value, fallback });
}

function path(value: string) {
  return describe(line().optional(), { value, kind: 'path' });
}

function onOff(fallback: boolean) {
  return z.union([z.boolean(), z.stringbool()], { error: 'expected true or false' }).default(fallback);
}

/** The first one is the default. */
function oneOf<const T extends string>(fallback: T, ...others: T[]) {
  const values = [fallback, ...others];
  return describe(z.enum(values).default(fallback), { value: values.length > 3 ? 'NAME' : values.join('|') });
}

function number(value: string, min: number, fallback: number) {
  const type = z.preprocess(toNumber, z.number('expected a number').min(min, `must be at least ${min}`));
  return describe(type.default(fallback), { value });
}

function seconds(min: number, fallback: number) {
  return number('SECONDS', min, fallback);
}

function whole(min: number, fallback: number, max = Number.MAX_SAFE_INTEGER) {
  const type = z.preprocess(
    toNumber,
    z
      .number('expected a number')
      .int('expected a whole number')
      .min(min, `must be at least ${min}`)
      .max(max, `must be at most ${max}`),
  );
  return describe(type.default(fallback), { value: 'N' });
}

function toNumber(value: unknown): unknown {
  return typeof value === 'string' && value.trim() !== '' && Number.isFinite(Number(value)) ? Number(value) : value;
}

const UNITS = ['', 'k', 'm', 'g', 't'];

function size(min: number, fallback: number) {
  const type = z.preprocess(toBytes, z.number('expected bytes, such as 1048576, 10MB or 2GiB').int().min(min));
  return describe(type.default(fallback), { value: 'SIZE' });
}

function toBytes(value: unknown): unknown {
  const [, digits, unit = '', binary] =
    typeof value === 'string' ? (/^\s*(\d+(?:\.\d+)?)\s*(?:([kmgt])?(i)?b)?\s*$/i.exec(value) ?? []) : [];
  if (digits === undefined) return value;
  return Math.floor(Number(digits) * (binary ? 1024 : 1000) ** UNITS.indexOf(unit.toLowerCase()));
}

function network() {
  const type = z.preprocess(
    (value) => (typeof value === 'string' && value !== 'none' && value !== 'allow' ? value.split(',') : value),
    z.union([z.enum(['none', 'allow']), z.array(line())], {
      error: 'expected none, allow, or hosts such as packages.example.org,files.example.org',
    }),
  );
  return describe(type.default('none'), { value: 'HOSTS' });
}

/** Names of Python modules. */
function modules(...fallback: string[]) {
  const name = line().regex(/^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$/, 'expected names of modules, such as numpy,scipy.stats');
  const type = z.preprocess((value) => (value === 'none' ? [] : splitList(value)), z.array(name));
  return describe(type.default(fallback), { value: 'MODULES' });
}

function endpoints() {
  const fallback = 'demo and URLs if callers need no key';
  return describe(z.preprocess(splitList, z.array(line())).optional(), { value: 'LIST', fallback });
}

function splitList(value: unknown): unknown {
  return typeof value === 'string' ? value.split(',').filter((part) => part.trim() !== '') : value;
}

function host() {
  const type = line()
    .transform(withoutBrackets)
    .refine((value) => isIP(value) !== 0 || /^[\w.-]+$/.test(value), 'expected a name or an address, without a port');
  return describe(type.default('127.0.0.1'), { value: 'ADDRESS' });
}

export function withoutBrackets(host: string): string {
  return host.replace(/^\[(.*)\]$/, '$1');
}

function apiKey() {
  const type = line().regex(/^[\x20-\x7e]+$/, 'it must have plain characters only, as a header can carry them');
  return describe(type.optional(), { value: 'KEY', kind: 'secret' });
}

function pathSecret() {
  const type = z.string().regex(/^[\w-]{16,}$/, 'it must have at least 16 characters of A-Z, a-z, 0-9, _ and -');
  return describe(type.optional(), { value: 'SECRET', kind: 'secret' });
}

function origins() {
  const origin = line()
    .transform(toOrigin)
    .refine(
      (value) => value === '*' || /^[a-z][a-z0-9+.-]*:\/\/[^/?#\s]+$/.test(value),
      'expected origins, such as https://chat.example.com, or *',
    );
  return describe(z.preprocess(splitList, z.array(origin)).default([]), { value: 'LIST' });
}

/** Normalizes an origin to what a browser sends: small letters, no default port, no slash at the end. */
function toOrigin(value: string): string {
  const bare = value.replace(/\/$/, '').toLowerCase();
  return /^https?:\/\/[^/?#]+$/.test(bare) && URL.canParse(bare) ? new URL(bare).origin : bare;
}
