/** What the conformance suite asks for and Cuvette has not: prompts, listed resources, sound, and messages to the client's log. */

import { setTimeout as sleep } from 'node:timers/promises';
import { completable, type McpServer, ResourceTemplate } from '@modelcontextprotocol/server';
import * as z from 'zod';
import { PIXEL } from './tools.ts';

/** The header of a sound file with nothing in it. */
const SILENCE = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=';
const IMAGE = { type: 'image' as const, data: PIXEL, mimeType: 'image/png' };

export function registerContent(server: McpServer): void {
  registerTools(server);
  registerResources(server);
  registerPrompts(server);
  // Of the older era; nothing is watched, and every level is let through.
  server.server.setRequestHandler('resources/subscribe', () => ({}));
  server.server.setRequestHandler('resources/unsubscribe', () => ({}));
}

function registerTools(server: McpServer): void {
  const description = 'A tool of the conformance suite.';
  server.registerTool('test_audio_content', { description }, () => ({
    content: [{ type: 'audio', data: SILENCE, mimeType: 'audio/wav' }],
  }));
  server.registerTool('test_embedded_resource', { description }, () => ({
    content: [
      {
        type: 'resource',
        resource: {
          uri: 'test://embedded-resource',
          mimeType: 'text/plain',
          text: 'This is an embedded resource content.',
        },
      },
    ],
  }));
  server.registerTool('test_multiple_content_types', { description }, () => ({
    content: [
      { type: 'text', text: 'Multiple content types test:' },
      IMAGE,
      {
        type: 'resource',
        resource: {
          uri: 'test://mixed-content-resource',
          mimeType: 'application/json',
          text: '{"test":"data","value":123}',
        },
      },
    ],
  }));
  for (const name of ['test_tool_with_logging', 'test_logging_tool']) {
    server.registerTool(name, { description }, async ({ mcpReq }) => {
      for (const message of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
        await mcpReq.log('info', message);
        await sleep(50);
      }
      return { content: [{ type: 'text', text: 'Done.' }] };
    });
  }
}

function registerResources(server: McpServer): void {
  server.registerResource(
    'static-text',
    'test://static-text',
    { description: 'Text that does not change.', mimeType: 'text/plain' },
    ({ href }) => ({
      contents: [{ uri: href, mimeType: 'text/plain', text: 'This is the content of the static text resource.' }],
    }),
  );
  server.registerResource(
    'static-binary',
    'test://static-binary',
    { description: 'A picture that does not change.', mimeType: 'image/png' },
    ({ href }) => ({ contents: [{ uri: href, mimeType: 'image/png', blob: PIXEL }] }),
  );
  server.registerResource(
    'template',
    new ResourceTemplate('test://template/{id}/data', { list: undefined }),
    { description: 'Data by its id.', mimeType: 'application/json' },
    ({ href }, { id }) => ({
      contents: [
        {
          uri: href,
          mimeType: 'application/json',
          text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }),
        },
      ],
    }),
  );
}

function registerPrompts(server: McpServer): void {
  const description = 'A prompt of the conformance suite.';
  server.registerPrompt('test_simple_prompt', { description }, () => ({
    messages: [{ role: 'user', content: { type: 'text', text: 'This is a simple prompt for testing.' } }],
  }));
  server.registerPrompt(
    'test_prompt_with_arguments',
    {
      description,
      argsSchema: z.object({
        arg1: completable(z.string().describe('The first.'), (value) =>
          ['paris', 'park', 'party'].filter((word) => word.startsWith(value)),
        ),
        arg2: z.string().describe('The second.'),
      }),
    },
    ({ arg1, arg2 }) => ({
      messages: [
        {
          role: 'user',
          content: { type: 'text', text: `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'` },
        },
      ],
    }),
  );
  server.registerPrompt(
    'test_prompt_with_embedded_resource',
    { description, argsSchema: z.object({ resourceUri: z.string().describe('What to embed.') }) },
    ({ resourceUri }) => ({
      messages: [
        {
          role: 'user',
          content: {
            type: 'resource',
            resource: { uri: resourceUri, mimeType: 'text/plain', text: 'Embedded resource content for testing.' },
          },
        },
        { role: 'user', content: { type: 'text', text: 'Please process the embedded resource above.' } },
      ],
    }),
  );
  server.registerPrompt('test_prompt_with_image', { description }, () => ({
    messages: [
      { role: 'user', content: IMAGE },
      { role: 'user', content: { type: 'text', text: 'Please analyze the image above.' } },
    ],
  }));
}
