/** Plays one turn of LibreChat as its releases do: which references each call is sent with, and what is taken over from its answer. */

import type { Caller, ExecAnswer, OutputFile, UploadAnswer } from './service.ts';

/** Names of @librechat/agents: up to LibreChat 0.8.5, in 0.8.6 and 0.8.7, and since. */
export type Release = '3.1' | '3.2' | '3.9';

export interface Held {
  id: string;
  name: string;
  session: string;
  kind: 'user' | 'agent' | 'skill';
  resource: string;
  version?: number | undefined;
}

export interface Turn {
  call(code: string, lang?: string): Promise<ExecAnswer>;
  /** What the next call is sent with. */
  readonly held: Held[];
  /** Files that its user is shown as new. */
  readonly attachments: OutputFile[];
}

export function uploaded({ files, storage_session_id }: UploadAnswer, more: Partial<Held> = {}): Held {
  const [file] = files;
  if (!file) throw new Error('nothing was uploaded');
  return {
    id: file.fileId,
    name: file.filename,
    session: storage_session_id,
    kind: 'user',
    resource: '64b7f0c2a1b2c3d4e5f60718',
    ...more,
  };
}

export function beginTurn(caller: Caller, release: Release, primed: Held[] = []): Turn {
  let held = primed;
  const attachments: OutputFile[] = [];

  const referenceTo = ({ id, name, session, kind, resource, version }: Held) =>
    release === '3.1'
      ? { session_id: session, id, name }
      : {
          id,
          resource_id: resource,
          name,
          storage_session_id: session,
          kind,
          ...(version !== undefined && { version }),
        };

  function takeOver(answer: ExecAnswer, sent: Held[]): void {
    const taken = answer.files.map((file): Held => {
      // The oldest takes every file for one of the answer's own session.
      const session = release === '3.1' ? answer.session_id : (file.storage_session_id ?? answer.session_id);
      const known = held.find((one) => one.id === file.id && one.session === session);
      return { kind: 'user', resource: file.id, ...known, id: file.id, name: file.name, session };
    });
    const names = new Set(taken.map(({ name }) => name));
    const deleted = new Set(release === '3.9' ? answer.deleted_files : []);
    const isDeleted = (one: Held) => deleted.has(one.name) && sent.includes(one);
    held = [...held.filter((one) => !names.has(one.name) && !isDeleted(one)), ...taken];
    attachments.push(...answer.files.filter(({ inherited }) => release === '3.1' || !inherited));
  }

  return {
    async call(code, lang = release === '3.1' ? 'py' : 'bash') {
      const sent = held;
      const files = sent.map(referenceTo);
      const answer = await caller.exec({ lang, code, ...(files.length > 0 && { files }) });
      takeOver(answer, sent);
      return answer;
    },
    get held() {
      return held;
    },
    attachments,
  };
}
