/** Defines what the page reads from the service, and parses it. The routes themselves are in `client.ts`, the streams in `events.ts`. */

import * as z from 'zod/mini';

export const sessionSchema = z.object({
  id: z.string(),
  names: z.array(z.string()),
  created_at: z.string(),
  used_at: z.string(),
  is_live: z.boolean(),
  executions: z.number(),
  running: z.nullable(z.number()),
  queued: z.number(),
  is_default: z.boolean(),
});
export type Session = z.infer<typeof sessionSchema>;

const interpreterSchema = z.object({
  name: z.string(),
  kind: z.string(),
  title: z.string(),
  language: z.string(),
  version: z.nullable(z.string()),
  state: z.string(),
  is_stateful: z.boolean(),
  pid: z.nullable(z.number()),
});
export type Interpreter = z.infer<typeof interpreterSchema>;

export const sessionDetailSchema = z.extend(sessionSchema, {
  interpreters: z.array(interpreterSchema),
  limits: z.optional(z.unknown()),
  sandbox: z.optional(z.string()),
  workspace: z.optional(z.string()),
});
export type SessionDetail = z.infer<typeof sessionDetailSchema>;

/** Null where the record keeps an output no more: then it is shown as it came, and its text is in /output. */
const index = z.nullable(z.number());

const bundle = {
  index,
  display_id: z.optional(z.nullable(z.string())),
  /** Values of MIME types, where they are small. */
  data: z.record(z.string(), z.unknown()),
  /** Bytes of those that are fetched by themselves. */
  large: z.optional(z.record(z.string(), z.number())),
  metadata: z.optional(z.unknown()),
};

export const outputSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('stream'), index, name: z.enum(['stdout', 'stderr']), text: z.string() }),
  z.object({ type: z.literal('display'), ...bundle }),
  z.object({ type: z.literal('result'), ...bundle }),
  z.object({
    type: z.literal('error'),
    index,
    ename: z.string(),
    evalue: z.string(),
    traceback: z.array(z.string()),
  }),
]);
export type Output = z.infer<typeof outputSchema>;
export type RichOutput = Extract<Output, { type: 'display' | 'result' }>;
export type ErrorOutput = Extract<Output, { type: 'error' }>;

const headFields = {
  number: z.number(),
  interpreter: z.string(),
  origin: z.nullable(z.string()),
  code: z.string(),
  state: z.enum(['queued', 'running', 'done']),
  outcome: z.nullable(z.enum(['ok', 'error', 'timeout', 'cancelled', 'died'])),
  reason: z.optional(z.nullable(z.object({ code: z.string(), message: z.nullable(z.string()) }))),
  exit_code: z.optional(z.nullable(z.number())),
  started_at: z.nullable(z.string()),
  wall: z.nullable(z.number()),
  cpu: z.optional(z.nullable(z.number())),
  peak: z.optional(z.nullable(z.number())),
  variables_survived: z.optional(z.nullable(z.boolean())),
  notes: z.optional(z.array(z.string())),
  text_length: z.optional(z.number()),
  output_is_cut: z.optional(z.boolean()),
};

export const executionHeadSchema = z.object(headFields);
export type ExecutionHead = z.infer<typeof executionHeadSchema>;

export const executionSchema = z.object({ ...headFields, outputs: z.array(outputSchema) });
export type Execution = z.infer<typeof executionSchema>;

export const executionsSchema = z.object({ executions: z.array(executionSchema), has_more: z.boolean() });

export const outputPageSchema = z.object({
  text: z.string(),
  offset: z.number(),
  next: z.nullable(z.number()),
  length: z.number(),
});
export type OutputPage = z.infer<typeof outputPageSchema>;

export const matchesSchema = z.object({
  matches: z.array(z.object({ offset: z.number(), line: z.string() })),
  has_more: z.boolean(),
});
export type Matches = z.infer<typeof matchesSchema>;

const variableSchema = z.object({
  name: z.string(),
  type: z.string(),
  shape: z.optional(z.array(z.number())),
  dtype: z.optional(z.string()),
  length: z.optional(z.number()),
  bytes: z.optional(z.number()),
  preview: z.optional(z.string()),
});
export type Variable = z.infer<typeof variableSchema>;
export const variablesSchema = z.object({ variables: z.array(variableSchema) });

const scalar = z.union([z.string(), z.number(), z.boolean(), z.null()]);
export const valueSchema = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('table'),
    columns: z.array(z.object({ name: z.string(), dtype: z.string() })),
    index: z.array(z.string()),
    rows: z.array(z.array(scalar)),
    row_count: z.number(),
    column_count: z.number(),
    offset: z.number(),
    column_offset: z.number(),
  }),
  z.object({
    kind: z.literal('tree'),
    type: z.string(),
    items: z.array(
      z.object({
        key: z.string(),
        type: z.string(),
        preview: z.string(),
        has_children: z.boolean(),
        /** By which it is asked for. */
        path: z.string(),
      }),
    ),
    count: z.number(),
  }),
  z.object({ kind: z.literal('text'), type: z.string(), text: z.string() }),
]);
export type Value = z.infer<typeof valueSchema>;
export type TableWindow = Extract<Value, { kind: 'table' }>;
export type Tree = Extract<Value, { kind: 'tree' }>;
export type Scalar = z.infer<typeof scalar>;

export const folderSchema = z.object({
  path: z.string(),
  entries: z.array(
    z.object({
      name: z.string(),
      kind: z.enum(['file', 'folder']),
      size: z.nullable(z.number()),
      modified_at: z.nullable(z.string()),
    }),
  ),
  is_cut: z.boolean(),
});
export type Folder = z.infer<typeof folderSchema>;
export type Entry = Folder['entries'][number];

export const toolSchema = z.object({
  name: z.string(),
  title: z.optional(z.nullable(z.string())),
  description: z.optional(z.nullable(z.string())),
  is_lab: z.boolean(),
  input_schema: z.unknown(),
});
export type Tool = z.infer<typeof toolSchema>;

export const toolAnswerSchema = z.object({
  text: z.string(),
  structured: z.optional(z.nullable(z.record(z.string(), z.unknown()))),
  images: z.optional(z.array(z.unknown())),
  is_error: z.boolean(),
});
export type ToolAnswer = z.infer<typeof toolAnswerSchema>;

export const problemSchema = z.object({
  code: z.optional(z.string()),
  error: z.optional(z.string()),
  title: z.optional(z.string()),
  detail: z.optional(z.string()),
});
