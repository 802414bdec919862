/** Answers the primitives that run code in the Python of the engine, where it has one. */

import { CuvetteError } from '../../errors.ts';
import type { Output } from '../../interpreters/interpreter.ts';
import type { CodeRunner } from '../core/code-runner.ts';
import { describeCode, interruptCode, listVariables, resetCode, runCode } from '../primitives/code.ts';
import { defineHandler, type Handler } from './handler.ts';
import type { LabResources } from './resources.ts';

export const CODE_HANDLERS: readonly Handler[] = [
  defineHandler(runCode, async (resources, { code, ...options }, { signal, output }) => {
    const onOutput = (one: Output) => output?.(one);
    const { ending, life } = await runnerOf(resources).run(code, { ...options, signal, onOutput });
    return { ending, life };
  }),
  defineHandler(interruptCode, async (resources, { run }) => {
    runnerOf(resources).interrupt(run);
    return { ok: true };
  }),
  defineHandler(describeCode, async (resources) => runnerOf(resources).describe()),
  defineHandler(listVariables, async (resources) => ({ variables: await runnerOf(resources).variables() })),
  defineHandler(resetCode, async (resources) => {
    await runnerOf(resources).reset();
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
