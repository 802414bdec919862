/** Refuses arguments that a schema does not have, at any depth, by name: a mistyped one must not be dropped without a word. */

import * as z from 'zod';
import { CuvetteError } from '../errors.ts';
import { nearestName } from '../nearest-name.ts';

interface UnknownArguments {
  /** The argument that is an object with unknown keys; empty for the arguments themselves. */
  path: string;
  names: string[];
  known: string[];
}

/** `name` is what takes the arguments: a tool, or a request. */
export function refuseUnknownArguments({ name, input }: { name: string; input: z.ZodType }, given: unknown): void {
  const found = unknownIn(input, given, '');
  if (found.length === 0) return;
  const sentences = found.map(({ path, names, known }) => {
    const unknown = names.map((argument) => {
      const meant = nearestName(argument, known);
      return `Unknown argument ${path ? `${path}.` : ''}${argument}${meant ? `; did you mean ${meant}?` : '.'}`;
    });
    return `${unknown.join(' ')} ${path || name} takes${known.length > 0 ? `: ${known.join(', ')}` : ' none'}.`;
  });
  throw new CuvetteError('invalid_input', sentences.join(' '));
}

function unknownIn(schema: z.core.$ZodType, given: unknown, path: string): UnknownArguments[] {
  if (typeof given !== 'object' || given === null) return [];
  if (isWrapper(schema)) return unknownIn(schema.unwrap(), given, path);
  if (schema instanceof z.ZodPipe)
    return unknownIn(schema.in instanceof z.ZodTransform ? schema.out : schema.in, given, path);
  if (schema instanceof z.ZodUnion) return unknownInUnion(schema.options, given, path);
  if (schema instanceof z.ZodArray && Array.isArray(given))
    return given.flatMap((item, index) => unknownIn(schema.element, item, `${path}[${index}]`)).slice(0, 1);
  if (!(schema instanceof z.ZodObject) || Array.isArray(given)) return [];
  const { shape } = schema;
  const known = Object.keys(shape);
  const isClosed = schema.def.catchall === undefined || schema.def.catchall instanceof z.ZodNever;
  // A name that begins with an underscore, such as _meta, is a client's own addition.
  const names = Object.keys(given).filter((name) => isClosed && !known.includes(name) && !name.startsWith('_'));
  const nested = Object.entries(given).flatMap(([name, value]) =>
    Object.hasOwn(shape, name) ? unknownIn(shape[name], value, path ? `${path}.${name}` : name) : [],
  );
  return [...(names.length > 0 ? [{ path, names, known }] : []), ...nested];
}

/** Judges by the option that has most of the keys. */
function unknownInUnion(options: readonly z.core.$ZodType[], given: object, path: string): UnknownArguments[] {
  const fitting = options.filter((option) => z.safeParse(option, given).success);
  const [best = []] = fitting
    .map((option) => unknownIn(option, given, path))
    .sort((a, b) => a.flatMap(({ names }) => names).length - b.flatMap(({ names }) => names).length);
  return best;
}

function isWrapper(schema: z.core.$ZodType): schema is z.ZodOptional | z.ZodNullable | z.ZodDefault {
  return schema instanceof z.ZodOptional || schema instanceof z.ZodNullable || schema instanceof z.ZodDefault;
}
