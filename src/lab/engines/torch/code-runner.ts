/** Runs code in the Python that holds the model, under run names that callers give and can interrupt. Runs are queued; one that is interrupted in the queue never starts. */

import type { ExitReport } from '../../../interpreters/interpreter.ts';
import type { CodeRunner } from '../../core/code-runner.ts';
import type { TorchInterpreter } from './torch-interpreter.ts';

const NEVER_BEGAN: ExitReport = {
  status: 'error',
  errorName: 'KeyboardInterrupt',
  stopped: { why: 'cancelled', rung: 'interrupted' },
  wall: 0,
  cpu: 0,
  peak: 0,
  ended: [],
};

export function createCodeRunner(interpreter: TorchInterpreter): CodeRunner {
  const runs = new Map<string, AbortController>();
  return {
    async run(code, { run, timeout, limit, cell, signal, onOutput }) {
      const stop = new AbortController();
      runs.set(run, stop);
      const stopped = AbortSignal.any([signal, stop.signal]);
      let hasBegun = false;
      const options = { signal: stopped, limit, cell, onOutput, onStart: () => (hasBegun = true) };
      try {
        const { ending, life } = await interpreter.execute(code, timeout === null ? options : { ...options, timeout });
        return { ending, life };
      } catch (error) {
        if (stop.signal.aborted && !hasBegun) return { ending: NEVER_BEGAN, life: interpreter.life() };
        throw error;
      } finally {
        runs.delete(run);
      }
    },
    interrupt: (run) => runs.get(run)?.abort(),
    async describe() {
      const { version, executable } = await interpreter.state();
      return { version, executable, life: interpreter.life() };
    },
    variables: () => interpreter.variables(),
    reset: () => interpreter.reset(),
  };
}
