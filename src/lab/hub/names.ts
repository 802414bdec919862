/** Checks names of repositories, revisions and files on the hub, before any of them becomes a path or a URL. */

import { CuvetteError } from '../../errors.ts';

export interface Repository {
  /** `org/name`, or `name` alone as of the oldest models. */
  id: string;
  /** What its folder is called here. */
  folder: string;
}

const PART = '[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?';
const ID = new RegExp(`^${PART}(?:/${PART})?$`);
const LONGEST = 96;

export function parseRepository(id: string): Repository {
  if (ID.test(id) && id.length <= LONGEST && !/--|\.\.|\.git$/.test(id)) return { id, folder: id.replace('/', '--') };
  throw new CuvetteError(
    'invalid_input',
    `${JSON.stringify(id)} is not the id of a repository on the hub. An id is org/name, as in HuggingFaceTB/SmolLM2-135M, or a name alone, as in gpt2. ` +
      'A folder is given by its path, which begins with / or ./ .',
  );
}

export function parseRevision(revision: string): string {
  if (/^[\w][\w./-]*$/.test(revision) && !/\.\.|\/\/|\/$/.test(revision)) return revision;
  throw new CuvetteError(
    'invalid_input',
    `${JSON.stringify(revision)} is not a revision. Give a branch, a tag or a commit, as in main.`,
  );
}

export function isCommit(revision: string): boolean {
  return /^[0-9a-f]{40}$/.test(revision);
}

export function parseFileName(name: string): string {
  if (isFileName(name)) return name;
  throw new CuvetteError(
    'invalid_input',
    `${JSON.stringify(name)} is not the name of a file in a repository. Give its path in the repository, as in layer_3/cfg.json.`,
  );
}

/** Whether the name stays below the folder that it is put in. */
export function isFileName(name: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: such characters are what is looked for.
  if (name === '' || /[\\\u0000-\u001f]/.test(name)) return false;
  return name.split('/').every((part) => part !== '' && part !== '.' && part !== '..');
}
