/** Evaluates an expression in the Python of a torch engine. */

import { expect } from 'vitest';
import type { Output } from '../../../../src/interpreters/interpreter.ts';
import type { TorchEngine } from '../../../../src/lab/engines/torch/torch-engine.ts';

/** The text of what the last expression gives. */
export async function evaluate(engine: TorchEngine, code: string): Promise<string> {
  const { outputs, ending } = await engine.execute(code);
  expect(ending.status, JSON.stringify(outputs)).toBe('ok');
  const result = outputs.findLast((output): output is Extract<Output, { type: 'result' }> => output.type === 'result');
  return String(result?.data['text/plain'] ?? '');
}
