/** The languages beside Python. One more is one more file, and one more line here. */

import { bash } from './bash.ts';
import { cpp } from './cpp.ts';
import { go } from './go.ts';
import type { Language } from './language.ts';
import { node } from './node.ts';
import { typescript } from './typescript.ts';

export const LANGUAGES: Language[] = [bash, node, typescript, go, cpp];

export const PYTHON_ALIASES = ['py', 'python', 'python3'];

export function languageOf(lang: string): Language | undefined {
  const wanted = lang.trim().toLowerCase();
  return LANGUAGES.find(({ aliases }) => aliases.includes(wanted));
}
