/** Defines a primitive of the lab as a value, from which its tool, its HTTP route and its remote client are made. */

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
