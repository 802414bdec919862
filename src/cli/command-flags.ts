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

const FIND_SERVER = {
  server: text('PID', 'which server, where several fit'),
  start: toggle('start a background server if there is none, even inside an agent'),
};

const JSON_ANSWER = { json: toggle('print JSON, for programs') };

export const RUN = {
  code: text('CODE', 'code from the command line, in place of a file', { short: 'c' }),
  interpreter: text('NAME', 'bash, node, typescript, go, cpp, or a Python of your own', { short: 'i' }),
  session: text('ID', 'another session than the default one'),
  timeout: text('SECONDS', 'until the code is interrupted; 0 for no limit'),
  ...FIND_SERVER,
};

export const CALL = { ...JSON_ANSWER, ...FIND_SERVER };

/** Beside the settings. */
export const SERVER = {
  project: text('FOLDER', "the project's folder, in place of the current one"),
  config: text('FILE', "settings as JSON; serve reads cuvette.json in the project's folder by itself", {
    variable: 'CUVETTE_CONFIG',
  }),
};

/** Of `serve`, and of `doctor`, which runs a call in each language as that service would. */
export const SERVICE = {
  'print-config': toggle('show every setting, its value and where that came from, and end'),
  ...JSON_ANSWER,
};

/** Of `serve` alone, beside the settings. */
export const SERVE = { open: toggle('open the workbench in a browser') };

export const UI = {
  port: text('N', '8001 if left out; any other, if that is in use'),
  ...SERVE,
  ...FIND_SERVER,
};

export const LAB_SERVE = {
  model: defaulted(text('MODEL', 'demo, a folder, or a Hugging Face id'), 'demo'),
  engine: defaulted(
    text('NAME', 'embedded, or torch: any model of transformers, on a GPU where there is one'),
    'embedded',
  ),
  dtype: text('TYPE', 'for torch; auto: bfloat16 on GPUs, else float32'),
  device: text('NAME', 'for torch; all GPUs if left out'),
  quantization: text('8bit|4bit', 'for torch'),
  'torch-python': text('PATH', 'a Python that has torch and transformers; found, or made once, if left out', {
    variable: 'CUVETTE_TORCH_PYTHON',
  }),
  host: defaulted(text('ADDRESS', "any other than this machine's own needs TLS"), '127.0.0.1'),
  port: text('N', '8787 if left out'),
  tunnel: defaulted(text('NAME', 'cloudflared or ngrok makes an https address for it'), 'none'),
  'tls-cert': text('FILE', 'serve https by this certificate'),
  'tls-key': text('FILE', 'the key of the certificate'),
  'token-file': text('FILE', 'where the token is, or is to be written; a new one is printed if left out', {
    variable: 'CUVETTE_LAB_TOKEN',
  }),
  'log-level': text('NAME', 'how much is logged', { variable: 'CUVETTE_LOG_LEVEL' }),
};

export const LAB_DEMO = {
  out: defaulted(text('FILE', 'the report'), 'cuvette-lab-report.html'),
  seed: defaulted(text('N', 'of everything random'), '0'),
};

export const COMMAND_FLAGS: Record<string, Record<string, Flag>> = {
  'mcp and serve': SERVER,
  'serve and doctor': SERVICE,
  serve: SERVE,
  ui: UI,
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

function text(value: string, about: string, more: Pick<Flag, 'short' | 'variable'> = {}) {
  return { type: 'string' as const, value, about, ...more };
}

function defaulted<T extends Flag>(flag: T, fallback: string) {
  return { ...flag, default: fallback };
}

function toggle(about: string) {
  return { type: 'boolean' as const, about };
}
