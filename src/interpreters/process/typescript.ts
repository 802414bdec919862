/** Runs TypeScript: takes its types out, and lets Node run the rest. Types are not checked. */

import type { Options } from '@swc/wasm-typescript';
import * as z from 'zod';
import { messageOf } from '../../errors.ts';
import { type Language, toolOf } from './language.ts';
import { isCommonJs, planJavaScript, probeNode } from './node.ts';

/** Characters. It happens in the server's own thread: what is larger would keep others waiting. */
const LARGEST_STRIPPED = 1024 ** 2;
const LARGEST_REWRITTEN = LARGEST_STRIPPED / 4;
const FILE = 'main.ts';

export const typescript: Language = {
  name: 'typescript',
  title: 'TypeScript',
  aliases: ['ts', 'typescript'],
  extension: 'ts',
  install: 'Install Node.js 20.19 or later (Debian, Ubuntu: https://nodejs.org/en/download; macOS: brew install node).',
  probe: probeNode,

  async plan(source) {
    await toolOf(typescript);
    const result = await toJavaScript(source.code);
    if ('refused' in result) return { steps: [], own: [], refused: result.refused };
    return planJavaScript(typescript, source, result.code, result.flags);
  },
};

type JavaScript = { code: string; flags: string[] } | { refused: string };

/** Blanks the types out, so that lines and columns stay; where that will not do, writes the program anew, with a source map. */
async function toJavaScript(code: string): Promise<JavaScript> {
  if (code.length > LARGEST_STRIPPED) return { refused: tooLarge(code, LARGEST_STRIPPED) };
  const compile = await loadCompiler();
  const stripped = compile(code, { mode: 'strip-only' });
  if ('problem' in stripped) {
    if (stripped.problem.code !== 'UnsupportedSyntax') return { refused: describe(stripped.problem) };
    if (code.length > LARGEST_REWRITTEN) return { refused: tooLarge(code, LARGEST_REWRITTEN) };
    return rewrite(code, compile);
  }
  if (hasUnusedImport(stripped.code) && code.length <= LARGEST_REWRITTEN) return rewrite(code, compile);
  return { code: stripped.code, flags: [] };
}

function rewrite(code: string, compile: Compile): JavaScript {
  const into = (importExportAssignConfig: 'Classic' | 'NodeNext') =>
    compile(code, {
      mode: 'transform',
      sourceMap: true,
      transform: { noEmptyExport: true, importExportAssignConfig },
    });
  let result = into('Classic');
  const needsRequire = /\bimport\s+[\w$]+\s*=\s*require\b/.test(code);
  if (needsRequire && 'code' in result && !isCommonJs(result.code)) result = into('NodeNext');
  if ('problem' in result) return { refused: describe(result.problem) };
  const map = JSON.stringify({ ...JSON.parse(result.map ?? '{}'), sourcesContent: [code] });
  const inline = `//# sourceMappingURL=data:application/json;base64,${Buffer.from(map).toString('base64')}`;
  return { code: `${result.code}\n${inline}\n`, flags: ['--enable-source-maps'] };
}

/** A name that is imported and not used may be a type, which the module does not have when it runs. */
function hasUnusedImport(code: string): boolean {
  const clauses = [...code.matchAll(/\bimport\b[^'";{}]*\{([^{}]*)\}\s*from\b/g)].map(([, names = '']) => names);
  if (clauses.length === 0) return false;
  const uses = new Map<string, number>();
  for (const [word] of code.matchAll(/[\p{ID_Continue}$]+/gu)) uses.set(word, (uses.get(word) ?? 0) + 1);
  return clauses.some((names) => {
    const locals = names.split(',').map(
      (name) =>
        name
          .trim()
          .split(/\s+as\s+/)
          .at(-1) ?? '',
    );
    return locals.every((name) => name === '') || locals.some((name) => uses.get(name) === 1);
  });
}

const problemSchema = z.object({
  code: z.string(),
  message: z.string(),
  snippet: z.string().optional(),
  startLine: z.number().optional(),
  startColumn: z.number().optional(),
});

type Problem = z.infer<typeof problemSchema>;
type Compile = (code: string, options: Options) => { code: string; map?: string } | { problem: Problem };

let loading: Promise<Compile> | undefined;

function loadCompiler(): Promise<Compile> {
  loading ??= import('@swc/wasm-typescript').then(({ transformSync }) => (code, options) => {
    try {
      return transformSync(code, { ...options, filename: FILE });
    } catch (error) {
      const problem = problemSchema.safeParse(error);
      return { problem: problem.success ? problem.data : { code: 'Failed', message: messageOf(error) } };
    }
  });
  return loading;
}

function describe({ message, snippet = '', startLine, startColumn }: Problem): string {
  const place = startLine === undefined ? FILE : `${FILE}:${startLine}:${(startColumn ?? 0) + 1}`;
  return `${place} - error: ${message}\n${snippet && `\n${snippet}`}`;
}

function tooLarge(code: string, most: number): string {
  return `${FILE} - error: the program has ${code.length} characters; Cuvette takes types out of at most ${most}. Put data into files of the workspace, or send it as JavaScript.\n`;
}
