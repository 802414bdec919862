/** Makes the startup code by which an interpreter loads a model, and turns its failure into an error. */

import { dirname } from 'node:path';
import { CuvetteError, type ErrorCode } from '../../../errors.ts';
import type { ExitReport, Output } from '../../../interpreters/interpreter.ts';
import { packageFile } from '../../../package-root.ts';

export interface TorchSettings {
  /** By default bfloat16 on a GPU, else float32. */
  dtype?: 'auto' | 'float32' | 'bfloat16' | 'float16';
  /** As torch names it; by default all GPUs, else the processor. */
  device?: string;
  /** Takes bitsandbytes. */
  quantization?: '8bit' | '4bit';
  /** Of the processor. */
  threads?: number;
}

/** Leaves nothing but `model`, `tokenizer` and `captures` behind; what is beside the package is not importable afterwards. */
export function startupCode(given: TorchSettings & { folder: string; socket: string }): string {
  const { folder, socket, dtype = 'auto', device = null, quantization = null, threads = null } = given;
  const place = dirname(packageFile('python', 'cuvette_torch'));
  // JSON within JSON is a string of Python's, too.
  const settings = JSON.stringify(JSON.stringify({ folder, socket, dtype, device, quantization, threads }));
  return [
    'import json, sys',
    `sys.path.insert(0, ${JSON.stringify(place)})`,
    'try:',
    '    import cuvette_torch',
    'finally:',
    '    del sys.path[0]',
    `model, tokenizer, captures = cuvette_torch.start(**json.loads(${settings}))`,
    'del json, sys, cuvette_torch',
  ].join('\n');
}

/** Codes that the package's own errors may have; they stand in brackets before the message. */
const CODES = ['bad_model', 'runtime_missing', 'too_large'] as const satisfies ErrorCode[];

/** Undefined if it went well. */
export function readFailure(
  outputs: readonly Output[],
  ending: ExitReport,
  id: string,
  python: string,
): CuvetteError | undefined {
  if (ending.status === 'ok') return undefined;
  if (ending.death) {
    const why = ending.death.oom
      ? 'the machine was out of memory'
      : (ending.death.signal ?? `exit ${ending.death.exit}`);
    const advice = 'Try a smaller model, bfloat16, or a machine with more memory.';
    return new CuvetteError('interpreter_failed', `${python} ended while it loaded ${id}: ${why}. ${advice}`);
  }
  const error = outputs.findLast((output) => output.type === 'error');
  const { ename = 'Error', evalue = '' } = error ?? {};
  const code = CODES.find((one) => evalue.startsWith(`[${one}] `));
  if (code) return new CuvetteError(code, evalue.slice(code.length + 3));
  if (ename === 'ModuleNotFoundError' || ename === 'ImportError') {
    const advice = `Install what the torch engine needs: ${python} -m pip install torch transformers safetensors`;
    return new CuvetteError('runtime_missing', `${python} cannot be used for the torch engine: ${evalue}. ${advice}`);
  }
  return new CuvetteError('interpreter_failed', `${python} could not load ${id}: ${ename}: ${evalue}`);
}
