import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { TOOLS } from '../../src/tools/registry.ts';

/** Arguments whose name says all there is to say. */
const SELF_EVIDENT = ['name', 'cwd', 'env', 'description', 'save', 'remove', 'execution', 'format', 'wait'];

const jsonSchema = z.object({
  type: z.literal('object'),
  properties: z.record(z.string(), z.looseObject({ description: z.string().optional() })),
  required: z.array(z.string()).default([]),
});

describe('the registry', () => {
  it('has the tools that agents know', () => {
    expect(TOOLS.map(({ name }) => name)).toEqual([
      'execute',
      'get_output',
      'interrupt',
      'reset',
      'list_vars',
      'get_session_info',
      'add_interpreter',
      'stop_interpreter',
      'list_interpreters',
      'export_session',
    ]);
  });
});

describe.each(TOOLS.map((tool) => [tool.name, tool] as const))('the tool %s', (name, tool) => {
  const input = jsonSchema.parse(z.toJSONSchema(tool.input, { io: 'input' }));

  it('has a name in snake_case and a title', () => {
    expect(name).toMatch(/^[a-z]+(_[a-z]+)*$/);
    expect(tool.title).toMatch(/^[A-Z]/);
  });

  it('has a description that is short, and a sentence', () => {
    expect(tool.description.length).toBeLessThan(600);
    expect(tool.description).toMatch(/^[A-Z][\s\S]*\.$/);
  });

  it('says what each argument is, where its name does not', () => {
    for (const [argument, { description }] of Object.entries(input.properties)) {
      expect(description !== undefined || SELF_EVIDENT.includes(argument), argument).toBe(true);
    }
  });

  it('has arguments in snake_case', () => {
    for (const argument of Object.keys(input.properties)) expect(argument).toMatch(/^[a-z]+(_[a-z]+)*$/);
  });

  it('can be called for the default session', () => {
    expect(Object.keys(input.properties)).toContain('session');
    expect(input.required).not.toContain('session');
  });

  it('has an answer with a schema, its fields in snake_case', () => {
    const { properties } = jsonSchema.parse(z.toJSONSchema(tool.output, { io: 'output' }));
    expect(Object.keys(properties).length).toBeGreaterThan(0);
    for (const field of Object.keys(properties)) expect(field).toMatch(/^[a-z]+(_[a-z]+)*$/);
  });

  it('has all four hints, which agree with each other', () => {
    const { readOnlyHint, destructiveHint, idempotentHint, openWorldHint } = tool.annotations;
    for (const hint of [readOnlyHint, destructiveHint, idempotentHint, openWorldHint])
      expect(hint).toBeTypeOf('boolean');
    expect(readOnlyHint && destructiveHint).toBe(false);
  });

  it('refuses arguments of the wrong type', () => {
    const wrong = Object.fromEntries(Object.keys(input.properties).map((argument) => [argument, Symbol.iterator]));
    expect(tool.input.safeParse(wrong).success).toBe(false);
  });
});

describe('the hints', () => {
  const annotations = Object.fromEntries(TOOLS.map((tool) => [tool.name, tool.annotations]));

  it('say which tools only read', () => {
    const readers = TOOLS.filter((tool) => tool.annotations.readOnlyHint).map(({ name }) => name);
    expect(readers).toEqual(['get_output', 'list_vars', 'get_session_info', 'list_interpreters']);
  });

  it('warn of code, and of lost variables', () => {
    expect(annotations.execute).toMatchObject({ destructiveHint: true, idempotentHint: false, openWorldHint: true });
    expect(annotations.reset).toMatchObject({ destructiveHint: true });
    expect(annotations.stop_interpreter).toMatchObject({ destructiveHint: true });
  });
});
