/** Routes of tools: which the caller may use, with the schemas of their arguments, and a call of one, with its progress where that is asked for. */

import { createRoute, OpenAPIHono, z } from '@hono/zod-openapi';
import { CuvetteError } from '../../errors.ts';
import { nearestName } from '../../nearest-name.ts';
import { callTool } from '../../tools/call.ts';
import type { Tool, ToolAnswer } from '../../tools/define-tool.ts';
import { goneSignal, originOf, type RestEnv } from '../caller.ts';
import { jsonBody, keepAliveJson, writtenJson } from '../json-answer.ts';
import { explain, refuseInvalid } from '../rest/problem.ts';
import { jsonAnswer } from './session-routes.ts';
import type { WorkbenchOptions } from './workbench.ts';

const EVENTS = 'text/event-stream';

const toolInfo = z
  .object({
    name: z.string(),
    title: z.string(),
    description: z.string(),
    annotations: z.record(z.string(), z.boolean()),
    is_lab: z.boolean(),
    input_schema: z.record(z.string(), z.unknown()).openapi({ description: 'A JSON schema.' }),
    output_schema: z.record(z.string(), z.unknown()),
  })
  .openapi('ToolInfo');

const toolAnswer = z
  .object({
    text: z.string().openapi({ description: 'As a model is told it.' }),
    structured: z.record(z.string(), z.unknown()),
    images: z.array(z.object({ mime_type: z.string(), base64: z.string() })),
    is_error: z.boolean(),
  })
  .openapi('ToolAnswer');

const listing = createRoute({
  method: 'get',
  path: '/tools',
  operationId: 'listTools',
  summary: 'The tools that agents have, and those of the lab',
  responses: { 200: jsonAnswer('Those that you may call.', z.object({ tools: z.array(toolInfo) })) },
});

const calling = createRoute({
  method: 'post',
  path: '/tools/{name}',
  operationId: 'callTool',
  summary: 'Call a tool; closing the connection cancels it',
  request: {
    params: z.object({ name: z.string().max(100) }),
    body: {
      content: {
        'application/json': { schema: z.object({ arguments: z.record(z.string(), z.unknown()).default({}) }) },
      },
      required: true,
    },
  },
  responses: {
    200: {
      description: 'What it says; with Accept: text/event-stream, events: progress { message }, then done.',
      content: { ...writtenJson(toolAnswer), [EVENTS]: { schema: z.string() } },
    },
    404: { description: 'There is no such tool, or it is not yours to call.' },
  },
});

export function toolRoutes(
  options: Pick<WorkbenchOptions, 'sessionsOf' | 'ownerOf' | 'toolsOf' | 'silence' | 'log'>,
): OpenAPIHono<RestEnv> {
  const app = new OpenAPIHono<RestEnv>({ defaultHook: refuseInvalid });
  const { silence } = options;

  app.openapi(listing, (c) => c.json({ tools: options.toolsOf(c).map(toToolInfo) }, 200));
  app.openapi(calling, async (c) => {
    const tool = toolNamed(options.toolsOf(c), c.req.valid('param').name);
    const given = c.req.valid('json').arguments;
    const gone = goneSignal(c);
    const of = { sessions: options.sessionsOf(c), caller: options.ownerOf(c), origin: originOf(c) };
    const call = async (signal: AbortSignal, progress: (message: string) => void) =>
      toAnswer(await callTool(tool, given, { ...of, signal, progress }, options.log));
    if (c.req.header('accept')?.includes(EVENTS)) return streamCall(call, { gone, silence });
    const body = call(gone, () => {}).then((answer) => jsonBody(answer));
    return keepAliveJson(body, { gone, silence, onLate: (error) => ({ ...explain(error), is_error: true }) });
  });
  return app;
}

type Call = (signal: AbortSignal, progress: (message: string) => void) => Promise<object>;

/** Tells progress as it comes. Who goes away cancels the call. */
function streamCall(call: Call, { gone, silence }: { gone: AbortSignal; silence: number }): Response {
  const stop = new AbortController();
  gone.addEventListener('abort', () => stop.abort(), { once: true });
  let timer: NodeJS.Timeout | undefined;
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      const write = (text: string) => {
        if (!stop.signal.aborted) controller.enqueue(Buffer.from(text));
      };
      const tell = (event: object) => write(`data: ${JSON.stringify(event)}\n\n`);
      timer = setInterval(() => write(': still here\n\n'), silence);
      call(stop.signal, (message) => {
        // Who does not read is told no more than fits.
        if ((controller.desiredSize ?? 0) > -MOST_UNREAD) tell({ type: 'progress', message });
      })
        .then((answer) => tell({ type: 'done', ...answer }))
        .catch((error: unknown) => controller.error(error))
        .finally(() => {
          clearInterval(timer);
          if (!stop.signal.aborted) controller.close();
        });
    },
    cancel() {
      clearInterval(timer);
      stop.abort();
    },
  });
  return new Response(body, {
    headers: { 'content-type': `${EVENTS}; charset=utf-8`, 'cache-control': 'no-cache', 'x-accel-buffering': 'no' },
  });
}

/** Pieces of a stream that wait for their reader. */
const MOST_UNREAD = 100;

function toolNamed(tools: readonly Tool[], name: string): Tool {
  const tool = tools.find((one) => one.name === name);
  if (tool) return tool;
  const meant = nearestName(
    name,
    tools.map((one) => one.name),
  );
  const advice = meant ? `did you mean ${meant}?` : 'GET /tools lists those that there are.';
  throw new CuvetteError('unknown_tool', `There is no tool ${name} for you; ${advice}`);
}

function toToolInfo({ name, title, description, annotations, lab, input, output }: Tool): z.infer<typeof toolInfo> {
  return {
    name,
    title,
    description,
    annotations,
    is_lab: lab !== undefined,
    input_schema: z.toJSONSchema(input, { io: 'input', unrepresentable: 'any' }),
    output_schema: z.toJSONSchema(output, { unrepresentable: 'any' }),
  };
}

function toAnswer({ text, structured, images = [], isError = false }: ToolAnswer): z.infer<typeof toolAnswer> {
  const pictures = images.map(({ mimeType, base64 }) => ({ mime_type: mimeType, base64 }));
  return { text, structured, images: pictures, is_error: isError };
}
