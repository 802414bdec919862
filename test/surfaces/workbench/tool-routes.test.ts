import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { CHANGES, defineTool, type ToolContext } from '../../../src/tools/define-tool.ts';
import { TOOLS } from '../../../src/tools/registry.ts';
import { openWorkbench } from './open-workbench.ts';

const EVENTS = { accept: 'text/event-stream' };

/** A tool that tells its progress, and waits until it is given up. */
function slowTool() {
  const contexts: ToolContext[] = [];
  const tool = defineTool({
    name: 'slow_tool',
    title: 'Slow',
    description: 'Waits.',
    input: z.object({ waits: z.boolean().default(false) }),
    output: z.object({ done: z.boolean() }),
    lab: 'inside',
    annotations: CHANGES,
    async handler({ waits }, context) {
      contexts.push(context);
      context.progress('half of it');
      if (waits) await new Promise((resolve) => context.signal.addEventListener('abort', resolve));
      return { text: 'Done.', structured: { done: true } };
    },
  });
  return { tool, contexts };
}

describe('the routes of tools', () => {
  it('list the tools of the caller, with schemas from which forms are made', async () => {
    const { tool } = slowTool();
    const { get } = await openWorkbench({}, { toolsOf: () => [...TOOLS, tool] });
    const { tools } = await get('/tools');
    expect(tools.map(({ name }: { name: string }) => name)).toEqual([...TOOLS.map(({ name }) => name), 'slow_tool']);
    expect(tools[0]).toMatchObject({
      name: 'execute',
      is_lab: false,
      annotations: { destructiveHint: true },
      input_schema: {
        type: 'object',
        required: ['code'],
        properties: { background: { type: 'boolean', default: false } },
      },
      output_schema: { type: 'object', properties: { outcome: {} } },
    });
    expect(tools.at(-1)).toMatchObject({ is_lab: true });
  });

  it('run code through the door, with the origin of who calls', async () => {
    const { post, get } = await openWorkbench();
    const answer = await post('/tools/execute', { arguments: { code: 'print hello' } });
    expect(await answer.json()).toMatchObject({
      text: 'hello',
      is_error: false,
      structured: { outcome: 'ok' },
      images: [],
    });
    expect((await get('/sessions/default/executions')).executions).toMatchObject([
      { code: 'print hello', origin: 'rest' },
    ]);
  });

  it('answer a wrong argument as the tool does, and an unknown tool with 404', async () => {
    const { post } = await openWorkbench();
    const wrong = await post('/tools/execute', { arguments: { cod: 'x' } });
    expect([wrong.status, await wrong.json()]).toMatchObject([
      200,
      { is_error: true, structured: { error: { code: 'invalid_input' } } },
    ]);
    const unknown = await post('/tools/exceute', { arguments: {} });
    expect([unknown.status, await unknown.json()]).toMatchObject([
      404,
      { code: 'unknown_tool', detail: 'There is no tool exceute for you; did you mean execute?' },
    ]);
  });

  it('tell progress as events, and the answer last', async () => {
    const { tool, contexts } = slowTool();
    const { post } = await openWorkbench({}, { toolsOf: () => [tool] });
    const response = await post('/tools/slow_tool', { arguments: {} }, EVENTS);
    expect(response.headers.get('content-type')).toMatch('text/event-stream');
    const events = (await response.text()).split('\n\n').filter(Boolean);
    expect(events.map((event) => JSON.parse(event.replace('data: ', '')))).toEqual([
      { type: 'progress', message: 'half of it' },
      { type: 'done', text: 'Done.', structured: { done: true }, images: [], is_error: false },
    ]);
    expect(contexts[0]).toMatchObject({ caller: 'me', origin: 'rest' });
  });

  it('cancel the call of a reader that goes away', async () => {
    const { tool, contexts } = slowTool();
    const { post } = await openWorkbench({}, { toolsOf: () => [tool] });
    const response = await post('/tools/slow_tool', { arguments: { waits: true } }, EVENTS);
    const reader = response.body?.getReader();
    await reader?.read();
    expect(contexts[0]?.signal.aborted).toBe(false);
    await reader?.cancel();
    expect(contexts[0]?.signal.aborted).toBe(true);
  });
});
