/** Runs a small program in each language, as `cuvette serve` with the same settings would run it, so that `cuvette doctor` sees what a caller sees. */

import type { Config } from '../config.ts';
import { messageOf } from '../errors.ts';
import type { Language } from '../interpreters/process/language.ts';
import { LANGUAGES } from '../interpreters/process/languages.ts';
import { type EnvironmentState, standingEnvironment } from '../interpreters/python/environment.ts';
import type { Paths } from '../paths.ts';
import { withoutSecrets } from '../sessions/environment-variables.ts';
import { BUILTIN } from '../sessions/interpreter-catalog.ts';
import { createServerResources } from '../sessions/server-resources.ts';
import type { SharedSessions } from '../sessions/shared-sessions.ts';
import { openServiceSessions } from './service-sessions.ts';

export interface Trial {
  language: string;
  state: 'works' | 'missing' | 'broken';
  detail: string;
}

const OWNER = 'cuvette doctor';
/** Characters of what a call has printed that are looked at. */
const MOST_SAID = 2000;
const ANSWER = '42';
/** Seconds. */
const LONGEST = 240;
const PYTHON_PROGRAM = 'print(6 * 7)';
const PROGRAMS: Record<Language['name'], string> = {
  bash: 'echo $((6 * 7))',
  node: 'console.log(6 * 7)',
  typescript: 'const answer: number = 6 * 7;\nconsole.log(answer);',
  go: 'package main\n\nimport "fmt"\n\nfunc main() { fmt.Println(6 * 7) }\n',
  cpp: '#include <iostream>\nint main() { std::cout << 6 * 7 << std::endl; }\n',
};

/** Yields a result for each language as soon as it is known. */
export async function* tryLanguages(options: {
  config: Config;
  paths: Paths;
  state: EnvironmentState;
}): AsyncGenerator<Trial> {
  const { config, paths, state } = options;
  const environment = standingEnvironment(state);
  const resources = createServerResources({ config, paths, env: withoutSecrets(), environment });
  // Sockets to zygotes and keepers do not keep the process alive, as the port of a service does.
  const awake = setInterval(() => {}, 1000);
  try {
    const sessions = await openServiceSessions({ config, resources });
    try {
      yield await tryLanguage(sessions.shared, BUILTIN, 'Python', PYTHON_PROGRAM);
      for (const language of LANGUAGES) {
        const info = await language.probe();
        if ('missing' in info)
          yield {
            language: language.title,
            state: 'missing',
            detail: `${info.missing.join(' or ')} is not installed. ${language.install}`,
          };
        else yield await tryLanguage(sessions.shared, language.name, language.title, PROGRAMS[language.name]);
      }
    } finally {
      await sessions.close(true); // Interpreters that wait for an earlier server go on waiting.
    }
  } finally {
    clearInterval(awake);
    resources.close();
  }
}

async function tryLanguage(
  shared: SharedSessions,
  interpreter: string,
  language: string,
  code: string,
): Promise<Trial> {
  try {
    const { session } = await shared.open({ owner: OWNER });
    try {
      const execution = session.execute({ code, interpreter, timeout: LONGEST });
      const { outcome, reason, wall } = await execution.done;
      const said = execution.transcript.tail(MOST_SAID).trim();
      if (outcome === 'ok' && said === ANSWER)
        return { language, state: 'works', detail: `a call was answered in ${Math.round((wall ?? 0) * 1000)} ms` };
      return {
        language,
        state: 'broken',
        detail: `a call failed: ${[reason?.message, said.split('\n').slice(-3).join(' | ')].filter(Boolean).join(' ') || 'it printed nothing'}`,
      };
    } finally {
      await shared.remove(OWNER, session.id);
    }
  } catch (error) {
    return { language, state: 'broken', detail: `a call failed: ${messageOf(error)}` };
  }
}
