/** Parses the body of an execution in every client dialect, ignoring fields of no meaning here, and translates it into a call. */

import { z } from '@hono/zod-openapi';
import { CuvetteError } from '../../errors.ts';
import { resourceOf } from '../../files/sharing.ts';
import { languageOf, PYTHON_ALIASES } from '../../interpreters/process/languages.ts';
import { BUILTIN } from '../../sessions/interpreter-catalog.ts';
import type { ServiceCallRequest } from '../../sessions/service-calls.ts';
import type { SessionChoice } from '../../sessions/shared-sessions.ts';
import type { Principal } from '../caller.ts';

const LONGEST_TIMEOUT = 86_400_000;
/** Characters of an id or a name. */
const LONGEST_NAME = 4096;
/** The operating system passes no more to a program. */
const MOST_ARGUMENTS = 20_000;
const LONGEST_ARGUMENTS = 2_000_000;
const MOST_FILES = 5000;
const name = z.string().max(LONGEST_NAME);
const text = name.nullish();

/** Refuses too long a list before its items are validated, which takes far longer than parsing them. */
export function listOf<T extends z.ZodType>(item: T, most: number) {
  return z.preprocess((value, context) => {
    if (!Array.isArray(value) || value.length <= most) return value;
    context.addIssue({
      code: 'too_big',
      maximum: most,
      origin: 'array',
      input: [],
      message: `more than ${most} of them`,
    });
    return z.NEVER;
  }, z.array(item).max(most));
}

const fileReference = z
  .object({
    id: name.openapi({ description: 'Enough to find it, whichever session is named beside it.' }),
    name: text,
    session_id: text,
    storage_session_id: text,
    kind: z.unknown().optional().openapi({ type: 'string', description: '`user`, `agent` or `skill`.' }),
    resource_id: z.unknown().optional().openapi({ type: 'string', description: 'Of the agent or the skill.' }),
    version: z.unknown().optional().openapi({ type: 'string', description: 'Of the skill.' }),
  })
  .openapi('FileReference');

export const execBody = z
  .object({
    lang: name.openapi({ example: 'py', description: 'py, bash, js, ts, go, cpp, or one of their other names.' }),
    code: z.string().openapi({ example: 'print("hello")' }),
    args: z
      .union([
        listOf(z.union([z.string(), z.number(), z.boolean()]).transform(String), MOST_ARGUMENTS),
        z.string().max(LONGEST_ARGUMENTS),
      ])
      .nullish()
      .openapi({ description: 'Arguments of the program: a list, or one string as a shell would split it.' }),
    stdin: z
      .string()
      .nullish()
      .openapi({ description: 'What the program reads; nothing if left out. Not for Python.' }),
    session_id: text,
    entity_id: z
      .string()
      .regex(/^[A-Za-z0-9_-]{1,40}$/, 'at most 40 characters of A-Z, a-z, 0-9, _ and -')
      .nullish()
      .openapi({ description: 'A name of yours for a session: the same name, the same variables and files.' }),
    runtime_session_hint: text,
    stateful: z.boolean().nullish().openapi({ description: 'Bash: keep variables, functions and folder.' }),
    timeout: z
      .number()
      .positive()
      .max(LONGEST_TIMEOUT)
      .nullish()
      .openapi({ description: 'Milliseconds; the setting of the service if left out.' }),
    files: listOf(fileReference, MOST_FILES).nullish(),
  })
  .openapi('Execution');

export type ExecBody = z.infer<typeof execBody>;

/** Returns the name of the interpreter for a `lang`. */
export function interpreterFor(lang: string): string {
  if (PYTHON_ALIASES.includes(lang.toLowerCase())) return BUILTIN;
  const language = languageOf(lang);
  if (language) return language.name;
  throw new CuvetteError('unknown_language', `There is no language ${JSON.stringify(lang.slice(0, 80))} here.`);
}

export function toCall(body: ExecBody, principal: Principal, signal: AbortSignal | undefined): ServiceCallRequest {
  const interpreter = interpreterFor(body.lang);
  return {
    owner: principal.id,
    tenant: principal.tenant,
    interpreter,
    origin: 'rest',
    code: body.code,
    args: typeof body.args === 'string' ? splitWords(body.args) : (body.args ?? undefined),
    stdin: body.stdin ?? undefined,
    timeout: body.timeout ? body.timeout / 1000 : undefined,
    session: chooseSession(body, interpreter),
    isStateful: body.stateful ?? Boolean(body.runtime_session_hint),
    files: (body.files ?? []).map(({ id, name, storage_session_id, kind, resource_id, version }) => ({
      id,
      name: name ?? undefined,
      resource: resourceOf({ kind, id: resource_id, version }),
      isCarried: typeof storage_session_id === 'string' || typeof kind === 'string',
    })),
    signal,
  };
}

export function chooseSession(
  body: Pick<ExecBody, 'session_id' | 'entity_id' | 'runtime_session_hint'>,
  interpreter: string,
): SessionChoice {
  if (body.runtime_session_hint) return { alias: `hint:${body.runtime_session_hint}` };
  if (body.entity_id) return { alias: `entity:${body.entity_id}` };
  if (body.session_id) return { id: body.session_id };
  return { isForOneCall: interpreter !== BUILTIN };
}

/** Splits a line into words as a shell does, with quotes and backslashes. */
export function splitWords(line: string): string[] {
  const words: string[] = [];
  for (const match of line.matchAll(/(?:[^\s"'\\]|\\[\s\S]|"(?:[^"\\]|\\[\s\S])*"|'[^']*')+/g)) {
    const word = match[0].replace(/"((?:[^"\\]|\\[\s\S])*)"|'([^']*)'|\\([\s\S])/g, (_, double, single, escaped) =>
      double !== undefined ? String(double).replace(/\\(["\\$`])/g, '$1') : (single ?? escaped),
    );
    words.push(word);
  }
  return words;
}
