/** Schemas as clients are shown them: without what a model pays for and has no use for. `callTool` checks the input, once, for every surface. */

import type { StandardSchemaWithJSON } from '@modelcontextprotocol/server';
import type * as z from 'zod';

/** Lengths are checked all the same, and refused with a sentence. */
const LEFT_OUT = ['$schema', 'additionalProperties', 'maxLength', 'minLength', 'maxItems', 'minItems', 'pattern'];

type Json = Record<string, unknown>;

// Over HTTP every request has a server of its own: what is dear to make is made once, for all of them.
const shown = new WeakMap<z.ZodObject, StandardSchemaWithJSON>();

export function shownSchema(schema: z.ZodObject): StandardSchemaWithJSON {
  const known = shown.get(schema);
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
  shown.set(schema, made);
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

/** The names in it are those of arguments, none of which is noise. */
function mapped(properties: Json): Json {
  return Object.fromEntries(
    Object.entries(properties).map(([name, value]) => [name, isObject(value) ? compact(value) : value]),
  );
}

function isNoise(key: string, value: unknown): boolean {
  // What an object of any names holds is no noise.
  if (key === 'additionalProperties') return typeof value === 'boolean';
  if (key === 'propertyNames') return true;
  const isBoundless = (key === 'minimum' || key === 'maximum') && Math.abs(Number(value)) === Number.MAX_SAFE_INTEGER;
  return isBoundless || LEFT_OUT.includes(key);
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
