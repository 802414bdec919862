/** Shortens the schemas that clients are sent: leaves out what costs a model tokens and does not help it. `callTool` validates input, for every surface. */

import type { StandardSchemaWithJSON } from '@modelcontextprotocol/server';
import type * as z from 'zod';

/** These are checked all the same, and a violation is refused with a sentence. */
const LEFT_OUT = ['$schema', 'additionalProperties', 'maxLength', 'minLength', 'maxItems', 'minItems', 'pattern'];

const LARGEST_SEED = 0xffff_ffff;

type Json = Record<string, unknown>;

// Over HTTP every request has a server of its own, so schemas are cached across servers.
const compacted = new WeakMap<z.ZodObject, StandardSchemaWithJSON>();

export function compactSchema(schema: z.ZodObject): StandardSchemaWithJSON {
  const known = compacted.get(schema);
  if (known) return known;
  const { jsonSchema } = schema['~standard'];
  const made: StandardSchemaWithJSON = {
    '~standard': {
      version: 1,
      vendor: 'cuvette',
      validate: (value) => ({ value }),
      jsonSchema: { input: once(jsonSchema.input), output: once(jsonSchema.output) },
    },
  };
  compacted.set(schema, made);
  return made;
}

/** Converts a schema at its first use; the SDK always asks for the same target. */
function once<Options>(convert: (options: Options) => Json): (options: Options) => Json {
  let json: Json | undefined;
  return (options) => {
    json ??= compact(convert(options));
    return json;
  };
}

function compact(schema: Json): Json {
  const entries = Object.entries(schema).flatMap(([key, value]) => {
    if (isNoise(key, value)) return [];
    if (key === 'properties' && isObject(value)) return [[key, mapped(value)]];
    if (Array.isArray(value)) return [[key, value.map((item) => (isObject(item) ? compact(item) : item))]];
    return [[key, isObject(value) && key !== 'default' ? compact(value) : value]];
  });
  return Object.fromEntries(entries);
}

/** Keeps every key, because these are names of arguments and not keywords of the schema. */
function mapped(properties: Json): Json {
  return Object.fromEntries(
    Object.entries(properties).map(([name, value]) => [name, isObject(value) ? compact(value) : value]),
  );
}

function isNoise(key: string, value: unknown): boolean {
  // A schema here says what an object with arbitrary keys holds.
  if (key === 'additionalProperties') return typeof value === 'boolean';
  if (key === 'propertyNames') return true;
  return isUnlikelyBound(key, Number(value)) || LEFT_OUT.includes(key);
}

/** Nobody asks for less than nothing or one of something, or comes near the largest integer. */
function isUnlikelyBound(key: string, value: number): boolean {
  if (key === 'minimum') return value === 0 || value === 1 || value === Number.MIN_SAFE_INTEGER;
  return key === 'maximum' && value >= LARGEST_SEED;
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
