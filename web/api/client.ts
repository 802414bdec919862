/** Calls the service's routes, relative to the page's own address, and turns what goes wrong into one kind of error. Streams are in `events.ts`. */

import * as z from 'zod/mini';
import {
  executionSchema,
  executionsSchema,
  folderSchema,
  matchesSchema,
  outputPageSchema,
  problemSchema,
  sessionDetailSchema,
  sessionSchema,
  toolSchema,
  valueSchema,
  variablesSchema,
} from './schemas.ts';

/** What the service refused, in its own words, or that it could not be reached (status 0). */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.name = 'ApiError';
    this.status = status;
    this.code = code;
  }
}

export interface TableQuery {
  offset: number;
  limit: number;
  columns?: [number, number] | undefined;
  sort?: string | undefined;
  desc?: boolean | undefined;
  filter?: string | undefined;
}

export interface RunRequest {
  code: string;
  interpreter?: string;
}

export type Api = ReturnType<typeof createApi>;

type Query = Record<string, string | number | undefined>;

/** `onRefused` hears of every 401: whoever is not signed in any more is asked to. */
export function createApi(base: string, onRefused: () => void) {
  const url = (path: string, query: Query = {}): string => {
    const address = new URL(path, base);
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) address.searchParams.set(name, String(value));
    }
    return address.href;
  };

  async function send(address: string, init: RequestInit = {}): Promise<Response> {
    const headers = new Headers(init.headers);
    headers.set('x-cuvette-origin', 'page');
    const response = await fetch(address, { ...init, headers, credentials: 'same-origin' }).catch((error: unknown) => {
      if (init.signal?.aborted) throw error;
      throw new ApiError(0, 'unreachable', 'The server does not answer. This page tries again by itself.');
    });
    if (response.ok) return response;
    if (response.status === 401) onRefused();
    throw await refusal(response);
  }

  async function get<T>(schema: z.ZodMiniType<T>, address: string, signal?: AbortSignal): Promise<T> {
    const response = await send(address, { headers: { accept: 'application/json' }, ...(signal && { signal }) });
    return schema.parse(await response.json());
  }

  async function post(address: string, body?: unknown, init: RequestInit = {}): Promise<Response> {
    const headers = new Headers(init.headers);
    if (body !== undefined) headers.set('content-type', 'application/json');
    return send(address, {
      ...init,
      headers,
      method: 'POST',
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  }

  const session = (id: string, rest = '') => `sessions/${encodeURIComponent(id)}${rest}`;
  const execution = (id: string, number: number, rest = '') => session(id, `/executions/${number}${rest}`);
  const interpreter = (id: string, name: string, rest: string) =>
    session(id, `/interpreters/${encodeURIComponent(name)}${rest}`);

  return {
    url,
    send,
    post,
    get,

    sessions: async (signal?: AbortSignal) =>
      (await get(z.object({ sessions: z.array(sessionSchema) }), url('sessions'), signal)).sessions,
    session: (id: string, signal?: AbortSignal) => get(sessionDetailSchema, url(session(id)), signal),
    createSession: async () => sessionSchema.parse(await (await post(url('sessions'), {})).json()),
    removeSession: async (id: string) => void (await send(url(session(id)), { method: 'DELETE' })),

    executions: (id: string, before: number | undefined, signal?: AbortSignal) =>
      get(executionsSchema, url(session(id, '/executions'), { before, limit: 50 }), signal),
    execution: (id: string, number: number, signal?: AbortSignal) =>
      get(executionSchema, url(execution(id, number)), signal),
    run: async (id: string, request: RunRequest) => {
      const response = await post(url(session(id, '/executions')), request);
      return z.object({ execution: z.number() }).parse(await response.json()).execution;
    },
    interrupt: async (id: string, number: number) => void (await post(url(execution(id, number, '/interrupt')))),

    outputPage: (id: string, number: number, offset: number, limit: number, signal?: AbortSignal) =>
      get(outputPageSchema, url(execution(id, number, '/output'), { offset, limit }), signal),
    searchOutput: (id: string, number: number, search: string, signal?: AbortSignal) =>
      get(matchesSchema, url(execution(id, number, '/output'), { search, limit: 100 }), signal),
    partUrl: (id: string, number: number, index: number, type: string) =>
      url(execution(id, number, `/outputs/${index}/${encodeURIComponent(type)}`)),
    part: async (id: string, number: number, index: number, type: string, signal?: AbortSignal) => {
      const address = url(execution(id, number, `/outputs/${index}/${encodeURIComponent(type)}`));
      return (await send(address, signal ? { signal } : {})).text();
    },

    variables: async (id: string, name: string, signal?: AbortSignal) =>
      (await get(variablesSchema, url(interpreter(id, name, '/variables')), signal)).variables,
    variable: (id: string, name: string, path: string, query: TableQuery, signal?: AbortSignal) => {
      const { offset, limit, columns, sort, desc, filter } = query;
      const window = columns && `${columns[0]}:${columns[1]}`;
      const address = url(interpreter(id, name, `/variables/${encodeURIComponent(path)}`), {
        offset,
        limit,
        columns: window,
        sort,
        desc: desc ? 1 : undefined,
        filter: filter || undefined,
      });
      return get(valueSchema, address, signal);
    },
    restart: async (id: string, name: string) => void (await post(url(interpreter(id, name, '/restart')))),

    folder: (id: string, path: string, signal?: AbortSignal) =>
      get(folderSchema, url(session(id, '/workspace'), { path }), signal),
    fileUrl: (id: string, path: string, isDownload = false) =>
      url(session(id, '/workspace/file'), { path, download: isDownload ? 1 : undefined }),
    upload: async (id: string, path: string, file: Blob, signal?: AbortSignal) =>
      void (await send(url(session(id, '/workspace/file'), { path }), {
        method: 'PUT',
        body: file,
        ...(signal && { signal }),
      })),
    exportUrl: (id: string, format: 'ipynb' | 'py') => url(session(id, '/export'), { format }),

    tools: async (signal?: AbortSignal) =>
      (await get(z.object({ tools: z.array(toolSchema) }), url('tools'), signal)).tools,

    signIn: async (credential: string) =>
      void (await post(url('login'), undefined, { headers: { authorization: `Bearer ${credential}` } })),
    signOut: async () => void (await post(url('logout'))),
  };
}

async function refusal(response: Response): Promise<ApiError> {
  const fallback = `The server answered ${response.status} ${response.statusText}.`;
  try {
    const { code, error, detail, title } = problemSchema.parse(await response.json());
    return new ApiError(response.status, code ?? error ?? String(response.status), detail ?? title ?? fallback);
  } catch {
    return new ApiError(response.status, String(response.status), fallback);
  }
}
