/** The body of an execution, as every dialect of it comes: read generously, fields that mean nothing here left aside. */

import { z } from '@hono/zod-openapi';
import { CuvetteError } from '../../errors.ts';
import { LANGUAGES, languageOf, PYTHON_ALIASES } from '../../interpreters/process/languages.ts';
import type { CallRequest } from '../../sessions/calls.ts';
import { BUILTIN } from '../../sessions/interpreter-pool.ts';
import type { Principal } from './principal.ts';

const LONGEST_TIMEOUT = 86_400_000;
const text = z.string().nullish();

const fileReference = z
  .object({
    id: z.string(),
    name: text,
    session_id: text,
    storage_session_id: text,
  })
  .openapi('FileReference');

export const execBody = z
  .object({
    lang: z.string().openapi({ example: 'py', description: 'py, bash, js, ts, go, cpp, or one of their other names.' }),
    code: z.string().openapi({ example: 'print("hello")' }),
    args: z
      .union([z.array(z.union([z.string(), z.number(), z.boolean()]).transform(String)), z.string()])
      .nullish()
      .openapi({ description: 'Arguments of the program: a list, or one string as a shell would split it.' }),
    stdin: text.openapi({ description: 'What the program reads; nothing if left out. Not for Python.' }),
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
    files: z.array(fileReference).nullish(),
  })
  .openapi('Execution');

export type ExecBody = z.infer<typeof execBody>;

/** The name of the interpreter for a `lang`. */
export function interpreterFor(lang: string): string {
  if (PYTHON_ALIASES.includes(lang.toLowerCase())) return BUILTIN;
  const language = languageOf(lang);
  if (language) return language.name;
  const known = [PYTHON_ALIASES[0], ...LANGUAGES.map(({ aliases }) => aliases[0])].join(', ');
  throw new CuvetteError('unknown_language', `There is no language ${JSON.stringify(lang)} here. There are: ${known}.`);
}

export function toCall(body: ExecBody, principal: Principal, signal: AbortSignal | undefined): CallRequest {
  return {
    owner: principal.id,
    interpreter: interpreterFor(body.lang),
    code: body.code,
    args: typeof body.args === 'string' ? splitWords(body.args) : (body.args ?? undefined),
    stdin: body.stdin ?? undefined,
    timeout: body.timeout ? body.timeout / 1000 : undefined,
    sessionId: body.session_id ?? undefined,
    entityId: body.entity_id ?? undefined,
    hint: body.runtime_session_hint ?? undefined,
    isStateful: body.stateful ?? undefined,
    files: (body.files ?? []).map(({ id, name, session_id, storage_session_id }) => ({
      id,
      session: storage_session_id ?? session_id ?? undefined,
      name: name ?? undefined,
    })),
    signal,
  };
}

/** Words as a shell takes them: apart at spaces, together in quotes, a backslash before what is meant as itself. */
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
