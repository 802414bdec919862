import { describe, expect, test } from 'vitest';
import * as z from 'zod';
import { createLabs } from '../../src/lab/labs/labs.ts';
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

const plan = defineTool({
  ...echo,
  name: 'plan',
  input: z.object({
    steps: z.array(z.object({ layer: z.number() })).optional(),
    source: z.union([z.string(), z.object({ path: z.string(), line: z.number().optional() })]).optional(),
    labels: z.record(z.string(), z.string()).default({}),
    extra: z.looseObject({}).optional(),
    note: z.preprocess((value) => value, z.object({ text: z.string() })).nullish(),
  }),
});

describe('callTool', () => {
  test.each(ALL.map((tool) => [tool.name, tool] as const))(
    'refuses an unknown argument of %s by name',
    async (name, tool) => {
      const answer = await call(tool, { no_such_argument: 1 });
      expect(answer).toMatchObject({ isError: true, structured: { error: { code: 'invalid_input' } } });
      expect(answer.text).toMatch(new RegExp(`^Unknown argument no_such_argument\\. ${name} takes: `));
    },
  );

  test.each([
    ['timout', 'timeout'],
    ['Timeout', 'timeout'],
    ['tiemout', 'timeout'],
    ['sesion', 'session'],
    ['cod', 'code'],
  ])('refuses the unknown argument %s and suggests %s', async (given, meant) => {
    const { text } = await call(echo, { [given]: 1 });
    expect(text).toBe(`Unknown argument ${given}; did you mean ${meant}? echo takes: code, timeout, session.`);
  });

  test('names all unknown arguments at once', async () => {
    const { text } = await call(echo, { timout: 1, colour: 'red' });
    expect(text).toContain('Unknown argument timout; did you mean timeout? Unknown argument colour.');
  });

  test('accepts an argument that begins with an underscore, which a client has added for itself', async () => {
    expect((await call(echo, { code: 'x', _meta: { progressToken: 1 } })).text).toBe('{"code":"x"}');
  });

  test.each([
    [
      { steps: [{ layer: 1 }, { layer: 2, layr: 3 }] },
      'Unknown argument steps[1].layr; did you mean layer? steps[1] takes: layer.',
    ],
    [{ source: { path: 'x', lin: 3 } }, 'Unknown argument source.lin; did you mean line? source takes: path, line.'],
    [{ note: { text: 'x', txt: 'y' } }, 'Unknown argument note.txt; did you mean text? note takes: text.'],
  ])('refuses the unknown key of a nested argument in %j', async (given, text) => {
    expect((await call(plan, given)).text).toBe(text);
  });

  test.each([
    { labels: { any: 'name' } },
    { extra: { any: { thing: 1 } } },
    { source: 'a path' },
    { steps: [{ layer: 1 }], note: null },
  ])('accepts %j, whose keys are known or free', async (given) => {
    expect(await call(plan, given)).not.toHaveProperty('isError');
  });

  test('leaves a value of the wrong type to the schema', async () => {
    expect((await call(plan, { source: { pth: 'x' } })).text).toContain('Invalid input');
    expect((await call(plan, [])).text).toContain('expected object');
  });
});
