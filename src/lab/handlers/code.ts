/** Code beside the model, for labs whose engine has a Python to run it in. */

import { CuvetteError } from '../../errors.ts';
import type { Output } from '../../interpreters/interpreter.ts';
import type { CodeRunner } from '../core/code-runner.ts';
import { describeCode, interruptCode, listVariables, resetCode, runCode } from '../primitives/code.ts';
import { defineHandler, type Handler } from './handler.ts';
import type { LabResources } from './resources.ts';

export const CODE_HANDLERS: readonly Handler[] = [
  defineHandler(runCode, async (bench, { code, ...options }, { signal, output }) => {
    const onOutput = (one: Output) => output?.(one);
    const { ending, life } = await runnerOf(bench).run(code, { ...options, signal, onOutput });
    return { ending, life };
  }),
  defineHandler(interruptCode, async (bench, { run }) => {
    runnerOf(bench).interrupt(run);
    return { ok: true };
  }),
  defineHandler(describeCode, async (bench) => runnerOf(bench).describe()),
  defineHandler(listVariables, async (bench) => ({ variables: await runnerOf(bench).variables() })),
  defineHandler(resetCode, async (bench) => {
    await runnerOf(bench).reset();
    return { ok: true };
  }),
];

function runnerOf({ code, model }: LabResources): CodeRunner {
  if (code) return code;
  throw new CuvetteError(
    'unknown_interpreter',
    `${model.id} is open in the embedded engine, which has no Python beside it. Use execute without interpreter, or serve the model with: cuvette lab serve --engine torch --model ${model.id}, and attach that with colab_attach.`,
  );
}
