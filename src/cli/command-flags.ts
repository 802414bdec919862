/** Declares the flags of every command once, for parsing and for help, and parses them. Flags of settings come from `settings.ts`. */

import { type ParseArgsConfig, parseArgs } from 'node:util';
import { CuvetteError, messageOf } from '../errors.ts';
import { nearestName } from '../nearest-name.ts';

export interface Flag {
  type: 'string' | 'boolean';
  short?: string;
  default?: string;
  /** What stands for the value in help. */
  value?: string;
  about: string;
  /** The variable that counts in its place. */
  variable?: string;
}

type Flags = Record<string, Flag>;

const FIND_SERVER = {
  server: { type: 'string', value: 'PID', about: 'which server, where several fit' },
  start: { type: 'boolean', about: 'start a background server if there is none, even inside an agent' },
} as const satisfies Flags;

const JSON_ANSWER = { json: { type: 'boolean', about: 'print JSON, for programs' } } as const satisfies Flags;

export const RUN = {
  code: { type: 'string', short: 'c', value: 'CODE', about: 'code from the command line, in place of a file' },
  interpreter: {
    type: 'string',
    short: 'i',
    value: 'NAME',
    about: 'bash, node, typescript, go, cpp, or a Python of your own, in place of the builtin Python',
  },
  session: { type: 'string', value: 'ID', about: 'another session than the default one' },
  timeout: { type: 'string', value: 'SECONDS', about: 'until the code is interrupted; 0 for no limit' },
  ...FIND_SERVER,
} as const satisfies Flags;

export const CALL = { ...JSON_ANSWER, ...FIND_SERVER } as const satisfies Flags;

/** Beside the settings. */
export const SERVER = {
  project: { type: 'string', value: 'FOLDER', about: "the project's folder, in place of the current one" },
  config: {
    type: 'string',
    value: 'FILE',
    variable: 'CUVETTE_CONFIG',
    about: "settings as JSON; serve reads cuvette.json in the project's folder by itself",
  },
} as const satisfies Flags;

/** Of `serve`, and of `doctor`, which runs a call in each language as that service would. */
export const SERVICE = {
  'print-config': { type: 'boolean', about: 'show every setting, its value and where that came from, and end' },
  ...JSON_ANSWER,
} as const satisfies Flags;

export const LAB_SERVE = {
  model: { type: 'string', default: 'demo', value: 'MODEL', about: 'demo, a folder, or a Hugging Face id' },
  engine: {
    type: 'string',
    default: 'embedded',
    value: 'embedded|torch',
    about: 'torch: any model of transformers, on a GPU where there is one',
  },
  dtype: { type: 'string', value: 'TYPE', about: 'for torch; auto: bfloat16 on GPUs, else float32' },
  device: { type: 'string', value: 'NAME', about: 'for torch; all GPUs if left out' },
  quantization: { type: 'string', value: '8bit|4bit', about: 'for torch' },
  'torch-python': {
    type: 'string',
    value: 'PATH',
    variable: 'CUVETTE_TORCH_PYTHON',
    about: 'a Python that has torch and transformers; found, or made once, if left out',
  },
  host: {
    type: 'string',
    default: '127.0.0.1',
    value: 'ADDRESS',
    about: "any other than this machine's own needs TLS",
  },
  port: { type: 'string', value: 'N', about: '8787 if left out' },
  tunnel: {
    type: 'string',
    default: 'none',
    value: 'NAME',
    about: 'cloudflared or ngrok makes an https address for it',
  },
  'tls-cert': { type: 'string', value: 'FILE', about: 'serve https by this certificate' },
  'tls-key': { type: 'string', value: 'FILE', about: 'the key of the certificate' },
  'token-file': {
    type: 'string',
    value: 'FILE',
    variable: 'CUVETTE_LAB_TOKEN',
    about: 'where the token is, or is to be written; a new one is printed if left out',
  },
  'log-level': { type: 'string', value: 'LEVEL', variable: 'CUVETTE_LOG_LEVEL', about: 'how much is logged' },
} as const satisfies Flags;

export const LAB_DEMO = {
  out: { type: 'string', default: 'cuvette-lab-report.html', value: 'FILE', about: 'the report' },
  seed: { type: 'string', default: '0', value: 'N', about: 'of everything random' },
} as const satisfies Flags;

export const COMMAND_FLAGS: Record<string, Flags> = {
  'mcp and serve': SERVER,
  'serve and doctor': SERVICE,
  run: RUN,
  call: CALL,
  'lab serve': LAB_SERVE,
  'lab demo': LAB_DEMO,
};

/** Refuses an unknown flag by name, with the nearest known one. */
export function parseFlags<T extends ParseArgsConfig>(config: T): ReturnType<typeof parseArgs<T>> {
  try {
    return parseArgs(config);
  } catch (error) {
    const [message, unknown] = /^Unknown option '--([^']+)'/.exec(messageOf(error)) ?? [messageOf(error)];
    const flags = Object.keys(config.options ?? {});
    const known = config.allowNegative ? [...flags, ...flags.map((flag) => `no-${flag}`)] : flags;
    const meant = unknown && nearestName(unknown, known);
    const advice = meant ? `; did you mean --${meant}?` : '.';
    throw new CuvetteError('invalid_input', `${message}${advice} Run: cuvette help`, { cause: error });
  }
}
