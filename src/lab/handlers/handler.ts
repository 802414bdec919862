/** Defines a handler: the code that answers a primitive, with its arguments checked first. */

import * as z from 'zod';
import { CuvetteError } from '../../errors.ts';
import type { LabContext } from '../core/lab.ts';
import type { Primitive } from '../primitives/primitive.ts';
import type { LabResources } from './resources.ts';

export interface Handler {
  name: string;
  /** Checks the arguments first. */
  run(resources: LabResources, args: unknown, context: LabContext): Promise<Record<string, unknown>>;
}

export function defineHandler<Input extends z.ZodObject, Output extends z.ZodObject>(
  primitive: Primitive<Input, Output>,
  work: (resources: LabResources, args: z.output<Input>, context: LabContext) => Promise<z.output<Output>>,
): Handler {
  return {
    name: primitive.name,
    async run(resources, args, context) {
      const parsed = primitive.input.safeParse(args);
      if (!parsed.success) throw new CuvetteError('invalid_input', z.prettifyError(parsed.error));
      return work(resources, parsed.data, context);
    },
  };
}
