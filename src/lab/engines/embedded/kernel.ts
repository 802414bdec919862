/** Loads the WebAssembly kernel: the one with fused multiply-add where this Node has relaxed SIMD, else the plain one. */

import { readFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { CuvetteError } from '../../../errors.ts';
import { packageFile } from '../../../package-root.ts';

/** See `kernel/schedule.as`. Everything is an address or a count. */
export interface Kernel {
  runProgram(control: number, program: number, count: number, scratch: number): void;
  help(control: number, scratch: number): void;
}

export type KernelVariant = 'simd' | 'relaxed';

/** Compiled once for all threads of an engine. The relaxed one where there is a choice. */
export function compileKernel(variant: KernelVariant = 'relaxed'): WebAssembly.Module {
  const bytes = variant === 'relaxed' ? relaxedKernel() : undefined;
  return new WebAssembly.Module(bytes ?? kernelBytes('kernel-simd.wasm'));
}

export function instantiateKernel(module: WebAssembly.Module, memory: WebAssembly.Memory): Kernel {
  const { exports } = new WebAssembly.Instance(module, { env: { memory } });
  const { runProgram, help } = exports;
  if (typeof runProgram !== 'function' || typeof help !== 'function') {
    throw new CuvetteError('internal', 'The kernel in dist/ is of another version. Run: npm run build');
  }
  return {
    runProgram: (control, program, count, scratch) => runProgram(control, program, count, scratch),
    help: (control, scratch) => help(control, scratch),
  };
}

function relaxedKernel(): Uint8Array<ArrayBuffer> | undefined {
  const bytes = kernelBytes('kernel-relaxed.wasm');
  if (WebAssembly.validate(bytes)) return bytes;
  // Node 20 has it behind a flag, later versions by default.
  setFlagsFromString('--experimental-wasm-relaxed-simd');
  return WebAssembly.validate(bytes) ? bytes : undefined;
}

function kernelBytes(name: string): Uint8Array<ArrayBuffer> {
  const path = packageFile('dist', name);
  try {
    return new Uint8Array(readFileSync(path));
  } catch (cause) {
    throw new CuvetteError('internal', `The engine's kernel is not at ${path}. Build it: npm run build`, { cause });
  }
}
