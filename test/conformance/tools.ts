/** Tools that the conformance suite calls by name and that are made as Cuvette's own are: they go the way of every call. */

import { setTimeout as sleep } from 'node:timers/promises';
import * as z from 'zod';
import { CuvetteError } from '../../src/errors.ts';
import { defineTool, READS, type Tool, type ToolAnswer, type ToolContext } from '../../src/tools/define-tool.ts';

export const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

export const FIXTURE_TOOLS: readonly Tool[] = [
  fixture('test_simple_text', async () => say('This is a simple text response for testing.')),
  fixture('test_image_content', async () => ({
    ...say('An image.'),
    images: [{ mimeType: 'image/png', base64: PIXEL }],
  })),
  fixture('test_error_handling', async () => {
    throw new CuvetteError('invalid_input', 'This tool intentionally returns an error for testing');
  }),
  fixture('test_tool_with_progress', async ({ progress }) => {
    for (const step of ['started', 'half way', 'nearly done']) {
      progress(step);
      await sleep(50);
    }
    return say('Done.');
  }),
  defineTool({
    ...fixture('test_parameter_in_header', async () => say('Done.')),
    input: z.object({ place: z.string().meta({ 'x-mcp-header': 'Place' }) }),
    handler: async ({ place }) => say(place),
  }),
];

function fixture(name: string, handler: (context: ToolContext) => Promise<ToolAnswer>): Tool {
  return defineTool({
    name,
    title: name,
    description: 'A tool of the conformance suite.',
    input: z.object({}),
    output: z.object({}),
    annotations: READS,
    handler: (_args, context) => handler(context),
  });
}

function say(text: string): ToolAnswer {
  return { text, structured: {} };
}
