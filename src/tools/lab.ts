/** Makes tools of the lab's primitives: adds the lab session that a call is for, and arguments that read and write the caller's files. */

import * as z from 'zod';
import { CuvetteError } from '../errors.ts';
import type { Labs } from '../lab/labs/labs.ts';
import type { Primitive } from '../lab/primitives/primitive.ts';
import { PRIMITIVES } from '../lab/primitives/table.ts';
import type { CallerFiles } from './caller-files.ts';
import { CHANGES, defineTool, READS, type Tool, type ToolAnswer, type ToolContext } from './define-tool.ts';

import { readPromptsFile } from './prompts-file.ts';

export interface LabToolsOptions {
  labsOf(context: ToolContext): Labs;
  files: CallerFiles;
  /** Whether callers may be others than the user of this machine, who are not shown paths on it. */
  isShared?: boolean;
}

const session = z.string().min(1).max(100).default('default').describe('From colab_attach.');
const note = z.string().optional();

/** Whether a caller is shown the lab's tools: every definition costs an agent tokens, so most are listed once the lab is used. */
export interface LabListing {
  /** Whether all of the lab's tools are listed. */
  isOpen(): boolean;
  /** Lists all tools from now on; returns true if they were not listed before. */
  open(): boolean;
}

/** Follows the setting `tools`. */
export function createLabListing(tools: 'auto' | 'all'): LabListing {
  let isOpen = tools === 'all';
  return {
    isOpen: () => isOpen,
    open() {
      const isNews = !isOpen;
      isOpen = true;
      return isNews;
    },
  };
}

export function createLabTools(options: LabToolsOptions): Tool[] {
  return [
    attachTool(options),
    detachTool(options),
    ...PRIMITIVES.map((primitive) => primitiveTool(primitive, options)),
  ];
}

function attachTool({ labsOf }: LabToolsOptions): Tool {
  return defineTool({
    name: 'colab_attach',
    title: 'Attach lab',
    description:
      'Choose the language model that the lab\'s tools look into; they are listed from then on. The URL of a cuvette serve, with its key, is for execute(interpreter="colab") alone.',
    input: z.object({
      endpoint: z
        .string()
        .min(1)
        .max(4096)
        .describe('"demo" (ships with Cuvette), a model folder, a Hugging Face id, or the URL of a cuvette lab serve.'),
      token: z.string().min(1).max(4096).optional().describe('Of a lab at a URL; it prints it when it starts.'),
      session_name: session.describe('A name, to have several.'),
    }),
    output: z.object({
      ok: z.boolean(),
      endpoint: z.string(),
      session_name: z.string(),
      health: z.record(z.string(), z.unknown()),
    }),
    lab: 'entrance',
    annotations: { ...CHANGES, openWorldHint: true },
    async handler({ endpoint, token, session_name }, context) {
      return unlessCancelled(context, async () => {
        const health = await labsOf(context).attach(session_name, endpoint, token, context);
        return { ok: true, endpoint, session_name, health };
      });
    },
  });
}

function detachTool({ labsOf }: LabToolsOptions): Tool {
  return defineTool({
    name: 'colab_detach',
    title: 'Detach lab',
    description:
      'Forget a lab session, with its address and token, and stop what it does. What the lab has kept stays there.',
    input: z.object({ session_name: session }),
    output: z.object({ ok: z.boolean(), endpoint: z.string(), session_name: z.string() }),
    lab: 'inside',
    annotations: CHANGES,
    async handler({ session_name }, context) {
      return unlessCancelled(context, async () => ({
        ok: true,
        endpoint: await labsOf(context).detach(session_name),
        session_name,
      }));
    },
  });
}

function primitiveTool(primitive: Primitive, { labsOf, files, isShared = false }: LabToolsOptions): Tool {
  const { name, title, description, effect } = primitive;
  const extras = EXTRAS[name];
  return defineTool({
    name,
    title,
    description,
    input: primitive.input.extend({ ...extras?.input, session_name: session }),
    output: primitive.output.extend({ ...extras?.output, lab_note: note }),
    lab: name === 'colab_status' ? 'entrance' : 'inside',
    annotations: effect === 'reads' ? READS : CHANGES,
    async handler({ session_name, ...args }, context) {
      const call = async (given: Record<string, unknown>) => {
        const { answer, note: told } = await labsOf(context).call(String(session_name), name, given, context);
        const { record_file, ...rest } = answer;
        return { ...(isShared ? rest : answer), ...(told !== undefined && { lab_note: told }) };
      };
      return unlessCancelled(context, () => (extras ? extras.run(args, call, files, context) : call(args)));
    },
  });
}

type Call = (args: Record<string, unknown>) => Promise<Record<string, unknown>>;

/** Arguments that name the caller's files, which a remote lab does not have. */
interface Extras {
  input: z.ZodRawShape;
  output?: z.ZodRawShape;
  run(
    args: Record<string, unknown>,
    call: Call,
    files: CallerFiles,
    context: ToolContext,
  ): Promise<Record<string, unknown>>;
}

const fromFile: Extras = {
  input: {
    prompts_file: z
      .string()
      .max(4096)
      .optional()
      .describe('In place of prompts: JSON lines of {prompt, label, pair_id, template_id}.'),
  },
  async run({ prompts_file, ...args }, call, files, context) {
    if (prompts_file === undefined) return call(args);
    return call({ ...readPromptsFile(await files.read(String(prompts_file), context)), ...args });
  },
};

/** Adds a page of the record, which `render` makes. */
function withReport(name: string, render: (record: unknown, manifest: string) => Promise<string>): Extras {
  return {
    input: {
      report: z
        .union([z.boolean(), z.string().max(4096)])
        .default(false)
        .describe('Write an HTML page: true, or its path.'),
    },
    output: { report_file: z.string().optional(), record_file: z.string().optional() },
    async run({ report, include_evidence, ...args }, call, files, context) {
      if (report === false) return call({ ...args, include_evidence });
      const { record, ...answer } = await call({ ...args, include_evidence: true });
      const usual = `${name}-${String(answer.manifest_sha256).slice(0, 8)}.html`;
      const page = await render(record, String(answer.manifest_sha256));
      const path = await files.write(typeof report === 'string' ? report : usual, page, context);
      return { ...answer, ...(include_evidence === true && { record }), report_file: path };
    },
  };
}

const EXTRAS: Record<string, Extras | undefined> = {
  capture_acts: fromFile,
  train_probe: fromFile,
  sweep: withReport('sweep', sweepPage),
  causality_protocol: withReport('causality', reportOf),
};

async function reportOf(record: unknown, manifest: string): Promise<string> {
  const [{ anyRecordSchema }, { renderReport }] = await Promise.all([
    import('../lab/causality/verdict.ts'),
    import('../lab/report/report.ts'),
  ]);
  const { evidence, ...rest } = anyRecordSchema.parse(record);
  if (evidence.format === 3) return renderReport({ ...rest, evidence }, { manifest });
  throw new CuvetteError(
    'invalid_input',
    `This lab made evidence of format ${evidence.format}, which an earlier version of Cuvette draws. Update the lab, or ask without report.`,
  );
}

async function sweepPage(record: unknown, manifest: string): Promise<string> {
  const [{ sweepRecordSchema }, { renderSweep }] = await Promise.all([
    import('../lab/site-sweep/sweep-record.ts'),
    import('../lab/report/sweep-report.ts'),
  ]);
  return renderSweep(sweepRecordSchema.parse(record), { manifest });
}

/** Answers a call that its caller has cancelled without reporting an error. */
async function unlessCancelled(
  { signal }: ToolContext,
  work: () => Promise<Record<string, unknown>>,
): Promise<ToolAnswer> {
  try {
    return answerOf(await work());
  } catch (error) {
    if (!signal.aborted) throw error;
    return { text: 'The call was given up.', structured: {}, isError: true };
  }
}

/** Writes the answer as JSON, with numbers rounded to six digits in the text. */
function answerOf(answer: Record<string, unknown>): ToolAnswer {
  const short = (_: string, value: unknown) =>
    typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(6)) : value;
  return { text: JSON.stringify(answer, short), structured: answer };
}
