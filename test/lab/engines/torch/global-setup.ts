/** Finds a Python with torch for the tests, or makes one, and a richer one beside it. */

import type { TestProject } from 'vitest/node';
import { type PreparedTorch, prepareTorch } from './prepare-torch.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** A Python that has torch and transformers. */
    torchPython: PreparedTorch['plain'];
    /** One that has accelerate, bitsandbytes and matplotlib, too; null where they cannot be installed. */
    richTorchPython: PreparedTorch['rich'];
  }
}

export default async function setup({ provide }: TestProject): Promise<void> {
  const { plain, rich } = await prepareTorch((message) => void process.stderr.write(`${message}\n`));
  provide('torchPython', plain);
  provide('richTorchPython', rich);
}
