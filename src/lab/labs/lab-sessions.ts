/** Stores lab sessions in memory or on disk: names and addresses in one file, and tokens in another that only the user can read. */

import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import { CuvetteError, codeOf } from '../../errors.ts';
import { withLock } from '../../file-lock.ts';
import { privateFolder } from '../../paths.ts';
import { writeDurably } from '../core/durable-files.ts';
import { whyInvalid } from '../core/json-files.ts';

export interface LabSession {
  endpoint: string;
  token: string | undefined;
  /** SHA-256 of the model that it had when it was attached. */
  weights?: string;
}

export interface LabSessions {
  names(): Promise<string[]>;
  get(name: string): Promise<LabSession | undefined>;
  save(name: string, session: LabSession, modelId: string): Promise<void>;
  /** Removes its address and token, too. */
  forget(name: string): Promise<void>;
}

const sessionsSchema = z.record(
  z.string(),
  z.object({ endpoint: z.string(), model_id: z.string(), weights_sha256: z.string(), attached_at: z.string() }),
);
const tokensSchema = z.record(z.string(), z.string());

/** In Cuvette's data folder. */
export function createStoredLabSessions(data: string): LabSessions {
  const folder = join(data, 'lab');
  const sessionsFile = join(folder, 'sessions.json');
  const tokensFile = join(folder, 'tokens.json');

  return {
    names: async () => Object.keys(await read(sessionsFile, sessionsSchema)),
    async get(name) {
      const session = own(await read(sessionsFile, sessionsSchema), name);
      if (!session) return undefined;
      const token = own(await read(tokensFile, tokensSchema), name);
      return { endpoint: session.endpoint, token, weights: session.weights_sha256 };
    },
    async save(name, { endpoint, token, weights = '' }, modelId) {
      privateFolder(folder);
      await withLock(`${sessionsFile}.lock`, undefined, async () => {
        const sessions = await read(sessionsFile, sessionsSchema);
        const { [name]: _, ...tokens } = await read(tokensFile, tokensSchema);
        const attached = new Date().toISOString();
        const session = { endpoint, model_id: modelId, weights_sha256: weights, attached_at: attached };
        await writeDurably(tokensFile, toJson(token === undefined ? tokens : { ...tokens, [name]: token }));
        await writeDurably(sessionsFile, toJson({ ...sessions, [name]: session }));
      });
    },
    async forget(name) {
      if (!existsSync(sessionsFile)) return;
      await withLock(`${sessionsFile}.lock`, undefined, async () => {
        const { [name]: _, ...sessions } = await read(sessionsFile, sessionsSchema);
        const { [name]: __, ...tokens } = await read(tokensFile, tokensSchema);
        await writeDurably(tokensFile, toJson(tokens));
        await writeDurably(sessionsFile, toJson(sessions));
      });
    },
  };
}

/** In memory: they end with this process. */
export function createMemoryLabSessions(): LabSessions {
  const sessions = new Map<string, LabSession>();
  return {
    names: async () => [...sessions.keys()],
    get: async (name) => sessions.get(name),
    save: async (name, session) => void sessions.set(name, session),
    forget: async (name) => void sessions.delete(name),
  };
}

/** Empty if there is no file. A file that cannot be read is an error and is not overwritten: the user may still need it. */
async function read<T>(path: string, schema: z.ZodType<Record<string, T>>): Promise<Record<string, T>> {
  try {
    return schema.parse(JSON.parse(await readFile(path, 'utf8')));
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return {};
    throw new CuvetteError(
      'unreadable_file',
      `${path}, which holds the labs that were attached, cannot be read: ${whyInvalid(error)}. It was left as it is. Mend it, or move it away and attach the labs again.`,
      { cause: error },
    );
  }
}

function own<T>(values: Record<string, T>, name: string): T | undefined {
  return Object.hasOwn(values, name) ? values[name] : undefined;
}

function toJson(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
