import { describe, expect, test } from 'vitest';
import * as z from 'zod';
import { createLabs } from '../../src/lab/labs.ts';
import { createLog } from '../../src/log.ts';
import type { Sessions } from '../../src/sessions/sessions.ts';
import { callTool } from '../../src/tools/call.ts';
import { projectFiles } from '../../src/tools/caller-files.ts';
import { defineTool, type Tool } from '../../src/tools/define-tool.ts';
import { createLabTools } from '../../src/tools/lab.ts';
import { TOOLS } from '../../src/tools/registry.ts';

const labs = createLabs({ data: '', cache: '', project: '' });
const ALL = [...TOOLS, ...createLabTools({ labsOf: () => labs, files: projectFiles('') })];
const context = { sessions: {} as Sessions, signal: new AbortController().signal, progress: () => {} };
const call = (tool: Tool, input: unknown) => callTool(tool, input, context, createLog('silent'));

const echo = defineTool({
  name: 'echo',
  title: 'Echo',
  description: 'Gives its arguments back.',
  input: z.object({ code: z.string().default(''), timeout: z.number().optional(), session: z.string().optional() }),
  output: z.object({}),
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  handler: async (args) => ({ text: JSON.stringify(args), structured: {} }),
});

describe('an argument that a tool does not have', () => {
  test.each(ALL.map((tool) => [tool.name, tool] as const))('is refused by %s, by name', async (name, tool) => {
    const answer = await call(tool, { no_such_argument: 1 });
    expect(answer).toMatchObject({ isError: true, structured: { error: { code: 'invalid_input' } } });
    expect(answer.text).toMatch(new RegExp(`^Unknown argument no_such_argument\\. ${name} takes: `));
  });

  test.each([
    ['timout', 'timeout'],
    ['Timeout', 'timeout'],
    ['tiemout', 'timeout'],
    ['sesion', 'session'],
    ['cod', 'code'],
  ])('%s is taken for a slip of %s', async (given, meant) => {
    const { text } = await call(echo, { [given]: 1 });
    expect(text).toBe(`Unknown argument ${given}; did you mean ${meant}? echo takes: code, timeout, session.`);
  });

  test('is told with all others of its kind', async () => {
    const { text } = await call(echo, { timout: 1, colour: 'red' });
    expect(text).toContain('Unknown argument timout; did you mean timeout? Unknown argument colour.');
  });

  test('is none if a client has added it for itself', async () => {
    expect((await call(echo, { code: 'x', _meta: { progressToken: 1 } })).text).toBe('{"code":"x"}');
  });
});
