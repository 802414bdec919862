/**
 * Opens the labs of an agent by session name: a name stands for a model of this machine or for a remote lab. Names outlive the process. No code of a lab
 * is loaded before the first call.
 */

import { isUrl } from '../../config.ts';
import { CuvetteError } from '../../errors.ts';
import { withAnySignal } from '../core/abort-signals.ts';
import type { Lab, LabContext } from '../core/lab.ts';
import { CODE_ALONE, PROTOCOL } from '../core/lab.ts';
import { createDisconnectedCalls } from '../remote/disconnected-calls.ts';
import { createMemoryLabSessions, createStoredLabSessions, type LabSession } from './lab-sessions.ts';

export interface Labs {
  /** Opens a model here (`demo`, a folder, a Hugging Face id), or connects to a lab by its URL. */
  attach(name: string, endpoint: string, token: string | undefined, context: LabContext): Promise<Health>;
  /** Removes the name with its address and token, aborts its calls, and returns the address. Captures and probes stay in the lab. */
  detach(name: string): Promise<string>;
  call(session: string, primitive: string, args: Record<string, unknown>, context: LabContext): Promise<Called>;
  /** Names that stand for a lab at a URL. */
  attached(): Promise<{ name: string; endpoint: string }[]>;
  close(): Promise<void>;
}

export type Health = Record<string, unknown>;

export interface Called {
  answer: Record<string, unknown>;
  /** A note for the caller on which lab answered. */
  note?: string;
}

export interface LabsOptions {
  /** Cuvette's data folder. */
  data: string;
  cache: string;
  /** What relative paths are meant from. */
  project: string;
  /** Whether names, addresses and tokens are stored for the next process; true by default. */
  store?: boolean;
  /** Throws for what may not be attached. */
  check?(endpoint: string): void;
  /** Whether callers may be others than the user of this machine: then no file is opened by a name that they give. */
  isShared?: boolean;
  /** How a model is opened in this process. */
  openLocal?: OpenLocal;
}

export type OpenLocal = (model: string, context: LabContext) => Promise<Lab>;

export const DEFAULT = 'default';
export const DEMO = 'demo';

interface OpenLab {
  /** The only name that may use it; undefined if all names of the same model share it. */
  name: string | undefined;
  endpoint: string;
  token: string | undefined;
  lab: Promise<Lab>;
  calls: number;
}

interface NamedLab {
  entry: OpenLab;
  /** Aborts the calls of the name when it is detached. */
  detached: AbortController;
  /** SHA-256 of the model that it had when it was attached by this name. */
  weights: string;
}

export function createLabs(options: LabsOptions): Labs {
  const openLocal = options.openLocal ?? localOpener(options);
  const sessions = options.store === false ? createMemoryLabSessions() : createStoredLabSessions(options.data);
  const disconnected = createDisconnectedCalls();
  const open = new Set<OpenLab>();
  const named = new Map<string, NamedLab>();
  const queues = new Map<string, Promise<unknown>>();

  /** Queues changes of one name, so that they are made in the order of the calls. */
  function queued<T>(name: string, work: () => Promise<T>): Promise<T> {
    const pending = (queues.get(name) ?? Promise.resolve()).then(work);
    queues.set(
      name,
      pending.catch(() => {}),
    );
    return pending;
  }

  async function attach(name: string, session: LabSession, context: LabContext): Promise<Health> {
    const { endpoint, token } = session;
    options.check?.(endpoint);
    // A local model is large, and opened once. A remote lab may hold a session for each name, with its own variables.
    const owner = isUrl(endpoint) ? name : undefined;
    const found = [...open].find((one) => one.name === owner && one.endpoint === endpoint && one.token === token);
    const entry = found ?? { name: owner, endpoint, token, lab: connect(session, context), calls: 0 };
    open.add(entry);
    const before = named.get(name)?.entry;
    return use(entry, async (lab) => {
      const health = await lab.call('colab_status', {}, context);
      checkHealth(session, health);
      named.set(name, { entry, weights: String(health.weights_sha256), detached: new AbortController() });
      if (before && before !== entry) await closeUnused(before);
      return health;
    });
  }

  function connect({ endpoint, token }: LabSession, context: LabContext): Promise<Lab> {
    if (!isUrl(endpoint)) return openLocal(endpoint, context);
    return import('../remote/open-remote.ts').then(({ openRemote }) =>
      openRemote({ endpoint, token, disconnected }, context.signal),
    );
  }

  async function use<T>(entry: OpenLab, work: (lab: Lab) => Promise<T>): Promise<T> {
    entry.calls += 1;
    try {
      return await work(await entry.lab);
    } finally {
      entry.calls -= 1;
      await closeUnused(entry);
    }
  }

  /** Closes a lab that no name stands for and no call uses. */
  async function closeUnused(entry: OpenLab): Promise<void> {
    if (entry.calls > 0 || [...named.values()].some((one) => one.entry === entry)) return;
    open.delete(entry);
    await entry.lab.then((lab) => lab.close()).catch(() => {});
  }

  /** Attaches a name again that an earlier process attached. */
  async function find(name: string, context: LabContext): Promise<NamedLab & { note?: string }> {
    return named.get(name) ?? queued(name, () => findAnew(name, context));
  }

  async function findAnew(name: string, context: LabContext): Promise<NamedLab & { note?: string }> {
    const known = named.get(name);
    if (known) return known;
    const kept = await sessions.get(name);
    if (!kept && name !== DEFAULT) throw await unknown(name);
    await attach(name, kept ?? { endpoint: DEMO, token: undefined }, context);
    const attached = named.get(name);
    if (!attached) throw new Error(`The lab session ${name} was closed as it was opened.`);
    if (kept) return attached;
    return {
      ...attached,
      note: 'No lab was attached: this is demo, the small model that ships with Cuvette. colab_attach opens another.',
    };
  }

  async function namesOf(): Promise<string[]> {
    return [...new Set([...named.keys(), ...(await sessions.names())])].sort();
  }

  async function unknown(name: string): Promise<CuvetteError> {
    const names = [...new Set([DEFAULT, ...(await namesOf())])].sort();
    return new CuvetteError(
      'unknown_session',
      `There is no lab session ${name}. There are: ${names.join(', ')}. Call colab_attach(endpoint, session_name="${name}") first.`,
    );
  }

  return {
    attach: (name, endpoint, token, context) =>
      queued(name, async () => {
        context.signal.throwIfAborted();
        const health = await attach(name, { endpoint, token }, context);
        await sessions.save(name, { endpoint, token, weights: String(health.weights_sha256) }, String(health.model_id));
        return health;
      }),
    detach: (name) =>
      queued(name, async () => {
        const known = named.get(name);
        const endpoint = known?.entry.endpoint ?? (await sessions.get(name))?.endpoint;
        if (endpoint === undefined) throw nothingToDetach(name, await namesOf());
        await sessions.forget(name);
        named.delete(name);
        known?.detached.abort(detachedMeanwhile(name));
        if (known) await closeUnused(known.entry);
        return endpoint;
      }),
    async call(session, primitive, args, context) {
      const { entry, weights, note, detached } = await find(session, context);
      const answer = await use(entry, (lab) =>
        withAnySignal([context.signal, detached.signal], (signal) =>
          lab.call(primitive, args, { ...context, signal, weights }),
        ),
      );
      return { answer, ...(note !== undefined && { note }) };
    },
    async attached() {
      const names = await namesOf();
      const all = await Promise.all(
        names.map(async (name) => ({
          name,
          endpoint: named.get(name)?.entry.endpoint ?? (await sessions.get(name))?.endpoint ?? '',
        })),
      );
      return all.filter(({ endpoint }) => isUrl(endpoint));
    },
    async close() {
      named.clear();
      await Promise.all([...open].map(({ lab }) => lab.then((one) => one.close()).catch(() => {})));
    },
  };
}

function localOpener({ data, cache, project, isShared = false }: LabsOptions): OpenLocal {
  return async (model, context) => {
    const { openLabThread } = await import('../local/lab-thread.ts');
    return openLabThread({ model, data, cache, project, isShared }, context);
  };
}

/** Throws if the lab speaks another protocol, or has other weights than when it was attached. */
function checkHealth({ endpoint, weights }: LabSession, health: Health): void {
  if (health.protocol !== PROTOCOL && health.protocol !== CODE_ALONE)
    throw new CuvetteError(
      'lab_unreachable',
      `The lab at ${endpoint} speaks protocol ${String(health.protocol)}, and this Cuvette ${PROTOCOL}. Run the same version of Cuvette on both sides.`,
    );
  if (weights !== undefined && health.weights_sha256 !== weights)
    throw new CuvetteError(
      'lab_changed',
      `The lab at ${endpoint} has another model now (${String(health.model_id)}), so its captures and probes are others too. Call colab_attach to use it all the same.`,
    );
}

function detachedMeanwhile(name: string): CuvetteError {
  return new CuvetteError('unknown_session', `The lab session ${name} was detached while this was at work.`);
}

function nothingToDetach(name: string, names: string[]): CuvetteError {
  const there = names.length === 0 ? 'None is attached.' : `Attached are: ${names.join(', ')}.`;
  return new CuvetteError('unknown_session', `There is no lab session ${name} to detach. ${there}`);
}
