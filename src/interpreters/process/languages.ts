/** Lists the languages beside Python. CONTRIBUTING.md says what else a new one needs. */

import { CuvetteError } from '../../errors.ts';
import { bash } from './bash.ts';
import { cpp } from './cpp.ts';
import { go } from './go.ts';
import type { Language } from './language.ts';
import { node } from './node.ts';
import { typescript } from './typescript.ts';

export const LANGUAGES: Language[] = [bash, node, typescript, go, cpp];

export const PYTHON_ALIASES = ['py', 'python', 'python3'];

/** By the name of its interpreter. */
export function languageNamed(name: string): Language | undefined {
  return LANGUAGES.find((language) => language.name === name);
}

/** By one of the names that callers have for it. */
export function languageOf(lang: string): Language | undefined {
  const wanted = lang.trim().toLowerCase();
  return LANGUAGES.find(({ aliases }) => aliases.includes(wanted));
}

/** Throws, with how to install it, if that is a language whose tools are not there. */
export async function checkRuntime(name: string): Promise<void> {
  const language = languageNamed(name);
  const info = await language?.probe();
  if (language && info && 'missing' in info)
    throw new CuvetteError(
      'runtime_missing',
      `${language.title} is not installed on this machine (${info.missing.join(', ')} not found). ${language.install}`,
    );
}
