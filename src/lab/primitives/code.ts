/** Defines the primitives that run code in the Python of a lab: what `execute`, `interrupt`, `list_vars` and `reset` ask of it. They are not tools. */

import * as z from 'zod';
import { exitReportSchema, variableSchema } from '../../interpreters/interpreter.ts';
import { definePrimitive } from './primitive.ts';

const run = z.string().min(1).max(100).describe('A name for this run, to interrupt it by.');

export const runCode = definePrimitive({
  name: 'run_code',
  title: 'Run code beside the model',
  description:
    'Run Python where the model is: model, tokenizer and captures are variables. What it shows comes as it is shown.',
  route: { method: 'POST', path: '/execute' },
  effect: 'keeps',
  input: z.object({
    code: z.string(),
    run,
    timeout: z.number().positive().nullable().default(null).describe('Seconds.'),
    limit: z.number().int().positive().default(1_000_000).describe('Characters that may be printed.'),
    cell: z.number().int().nonnegative().default(0).describe('A number for tracebacks.'),
  }),
  output: z.object({
    /** How it ended. */
    ending: exitReportSchema,
    /** Which Python it ran in: a number that grows each time that it had to start afresh. */
    life: z.number(),
  }),
});

export const interruptCode = definePrimitive({
  name: 'interrupt_code',
  title: 'Interrupt code',
  description: 'Stop a run of code. Variables survive unless the code ignores interrupts.',
  route: { method: 'POST', path: '/interrupt' },
  effect: 'keeps',
  input: z.object({ run }),
  output: z.object({ ok: z.boolean() }),
});

export const describeCode = definePrimitive({
  name: 'describe_code',
  title: 'Describe the interpreter',
  description: 'The Python beside the model: its version, where it is, and how often it has been started.',
  route: { method: 'GET', path: '/interpreter' },
  effect: 'reads',
  input: z.object({}),
  output: z.object({ version: z.string(), executable: z.string(), life: z.number() }),
});

export const listVariables = definePrimitive({
  name: 'list_variables',
  title: 'List variables',
  description: 'The variables of the Python beside the model.',
  route: { method: 'GET', path: '/variables' },
  effect: 'reads',
  input: z.object({}),
  output: z.object({ variables: z.array(variableSchema) }),
});

export const resetCode = definePrimitive({
  name: 'reset_code',
  title: 'Reset the interpreter',
  description: 'A fresh Python, which loads the model again.',
  route: { method: 'POST', path: '/reset' },
  effect: 'keeps',
  input: z.object({}),
  output: z.object({ ok: z.boolean() }),
});
