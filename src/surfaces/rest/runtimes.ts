/** Reports which languages can be run on this machine, in which version and with which libraries. */

import { LANGUAGES, PYTHON_ALIASES } from '../../interpreters/process/languages.ts';
import { type Libraries, librariesOf } from '../../interpreters/process/libraries.ts';
import { type Environment, installedVersions, zygoteSpec } from '../../interpreters/python/environment.ts';
import { probePython } from '../../interpreters/python/probe.ts';
import { searchPath } from '../../search-path.ts';
import { BUILTIN } from '../../sessions/interpreter-catalog.ts';

export interface Runtime {
  /** The short name, such as py, bash or js. */
  lang: string;
  title: string;
  version: string | null;
  missing: string[];
  install: string | null;
  aliases: string[];
}

export interface Runtimes {
  languageOf(interpreter: string): string;
  versionOf(interpreter: string): Promise<string>;
  all(): Promise<Runtime[]>;
  /** Lists the libraries of a language, given by its short name; none if it cannot be run. */
  libraries(lang: string): Promise<Libraries>;
}

/** `path` holds the folders in which code looks for commands. */
export function createRuntimes(environment: Environment, path: string[] = searchPath()): Runtimes {
  const short = (interpreter: string) =>
    LANGUAGES.find(({ name }) => name === interpreter)?.aliases[0] ?? PYTHON_ALIASES[0] ?? interpreter;

  async function python(): Promise<{ version: string; site: string }> {
    return probeOnce(zygoteSpec(await environment.state()).python);
  }

  const probed = new Map<string, ReturnType<typeof probePython>>();
  function probeOnce(path: string): ReturnType<typeof probePython> {
    const known = probed.get(path) ?? probePython(path);
    probed.set(path, known);
    known.catch(() => probed.delete(path));
    return known;
  }

  return {
    languageOf: short,
    async versionOf(interpreter) {
      const language = LANGUAGES.find(({ name }) => name === interpreter);
      if (!language) return interpreter === BUILTIN ? (await python()).version : '';
      const info = await language.probe();
      return 'missing' in info ? '' : info.version;
    },
    async all() {
      const builtin = await python().then(
        ({ version }) => ({ version, missing: [] }),
        () => ({ version: null, missing: ['python3'] }),
      );
      const others = await Promise.all(
        LANGUAGES.map(async ({ name, title, install, aliases, probe }) => {
          const info = await probe();
          const isMissing = 'missing' in info;
          return {
            lang: short(name),
            title,
            aliases,
            version: isMissing ? null : info.version,
            missing: isMissing ? info.missing : [],
            install: isMissing ? install : null,
          };
        }),
      );
      const install = builtin.version === null ? 'Debian, Ubuntu: apt install python3 python3-venv.' : null;
      return [{ lang: 'py', title: 'Python', aliases: PYTHON_ALIASES, install, ...builtin }, ...others];
    },
    async libraries(lang) {
      const language = LANGUAGES.find(({ name }) => short(name) === lang);
      const found = language
        ? librariesOf(language, path)
        : python().then(({ site }) => Object.fromEntries([...installedVersions(site)].sort()));
      return found.catch(() => ({}));
    },
  };
}
