/** Finds a Python and asks it what it is. */

import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { CuvetteError, messageOf } from '../../errors.ts';
import { isExecutable, searchPath } from '../../search-path.ts';

const run = promisify(execFile);
const QUESTION =
  'import sys,json,sysconfig;print(json.dumps({"version":sys.version.split()[0],"executable":sys.executable,"prefix":sys.prefix,"site":sysconfig.get_path("purelib")}))';

export interface PythonInfo {
  version: string;
  executable: string;
  prefix: string;
  site: string;
}

/** Asks a Python for its version and places; refuses one that is missing, broken or too old. */
export async function probePython(path: string): Promise<PythonInfo> {
  let answer: string;
  try {
    answer = (await run(path, ['-c', QUESTION], { timeout: 20_000 })).stdout;
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    throw new CuvetteError(
      isMissing ? 'unknown_interpreter' : 'interpreter_failed',
      isMissing
        ? `There is no Python at ${path}. Give the path of a Python executable, for example .venv/bin/python.`
        : `${path} does not work as a Python: ${messageOf(error).split('\n').slice(0, 3).join(' ')}`,
      { cause: error },
    );
  }
  const info = parseInfo(path, answer);
  const [major = 0, minor = 0] = info.version.split('.').map(Number);
  if (major < 3 || (major === 3 && minor < 9)) {
    throw new CuvetteError('python_too_old', `${path} is Python ${info.version}; Cuvette needs Python 3.9 or later.`);
  }
  return info;
}

function parseInfo(path: string, answer: string): PythonInfo {
  try {
    return JSON.parse(answer) as PythonInfo;
  } catch (error) {
    throw new CuvetteError(
      'interpreter_failed',
      `${path} does not work as a Python: it ran, but did not say what it is.`,
      {
        cause: error,
      },
    );
  }
}

/** The Python that the builtin interpreter is made from: the one asked for, else the first good one on PATH. */
export async function findPython(wanted: string | undefined): Promise<PythonInfo> {
  if (wanted) return probePython(wanted);
  let problem: unknown;
  for (const folder of searchPath()) {
    for (const name of ['python3', 'python']) {
      const path = join(folder, name);
      if (!isExecutable(path)) continue;
      try {
        return await probePython(path);
      } catch (error) {
        problem ??= error;
      }
    }
  }
  throw new CuvetteError(
    'python_missing',
    `No Python 3.9 or later was found on PATH${problem ? ` (${messageOf(problem)})` : ''}. ` +
      'Install one (Debian, Ubuntu: apt install python3 python3-venv; macOS: brew install python), or set CUVETTE_PYTHON.',
  );
}
