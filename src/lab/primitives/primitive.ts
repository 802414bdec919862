/** A primitive of the lab is a value: tools, HTTP routes and the client of a lab elsewhere are made from it. What it does is a handler's. */

import type * as z from 'zod';

export interface Primitive<Input extends z.ZodObject = z.ZodObject, Output extends z.ZodObject = z.ZodObject> {
  /** Of the tool. */
  name: string;
  title: string;
  /** For a model that pays for every word. */
  description: string;
  route: { method: 'GET' | 'POST'; path: string };
  /** Whether something is kept that was not there before. */
  effect: 'reads' | 'keeps';
  input: Input;
  output: Output;
}

export function definePrimitive<Input extends z.ZodObject, Output extends z.ZodObject>(
  primitive: Primitive<Input, Output>,
): Primitive<Input, Output> {
  return primitive;
}
