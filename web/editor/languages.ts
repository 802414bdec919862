/** Loads the grammar of a language when code of it is first shown. A language without one is shown as plain text. */

import { type Language, StreamLanguage } from '@codemirror/language';

const LOADERS: Record<string, () => Promise<Language>> = {
  python: async () => (await import('@codemirror/lang-python')).pythonLanguage,
  javascript: async () => (await import('@codemirror/lang-javascript')).javascriptLanguage,
  typescript: async () => (await import('@codemirror/lang-javascript')).typescriptLanguage,
  go: async () => (await import('@codemirror/lang-go')).goLanguage,
  cpp: async () => (await import('@codemirror/lang-cpp')).cppLanguage,
  shell: async () => StreamLanguage.define((await import('@codemirror/legacy-modes/mode/shell')).shell),
};

/** Interpreters that the server names by themselves. */
const SYNONYMS: Record<string, string> = {
  bash: 'shell',
  sh: 'shell',
  node: 'javascript',
  builtin: 'python',
  'c++': 'cpp',
};

const loaded = new Map<string, Promise<Language | undefined>>();

export function loadLanguage(name: string): Promise<Language | undefined> {
  const key = SYNONYMS[name] ?? name;
  const known = loaded.get(key);
  if (known) return known;
  const loading = LOADERS[key]?.().catch(() => undefined) ?? Promise.resolve(undefined);
  loaded.set(key, loading);
  return loading;
}
