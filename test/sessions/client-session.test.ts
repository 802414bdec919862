import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ancestorsOf } from '../../src/process-tree.ts';
import { findClientSession } from '../../src/sessions/client-session.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const [parent] = ancestorsOf(process.pid);
const ID = '41733815-cedd-4a09-b3d0-05b37af28bdd';

/** A folder of settings as Claude Code keeps it, with a note of this very process's parent. */
function settings(note: Record<string, unknown> | undefined, transcripts: string[] = []) {
  const folder = temporaryFolder();
  mkdirSync(join(folder, 'sessions'));
  mkdirSync(join(folder, 'projects', '-code-app'), { recursive: true });
  if (note) writeFileSync(join(folder, 'sessions', `${parent?.pid}.json`), JSON.stringify(note));
  for (const id of transcripts) writeFileSync(join(folder, 'projects', '-code-app', `${id}.jsonl`), '');
  return folder;
}

describe("the conversation of a server's agent", () => {
  test('is the one that an ancestor has noted under its pid, with its transcript', () => {
    const note = { pid: parent?.pid, sessionId: ID, procStart: parent?.started };
    const folder = settings(note, [ID, 'another']);
    expect(findClientSession({ CLAUDE_CONFIG_DIR: folder, CLAUDE_CODE_SESSION_ID: 'before-clear' })).toEqual({
      id: ID,
      transcript: join(folder, 'projects', '-code-app', `${ID}.jsonl`),
    });
  });

  test('is the one that the agent gave to the server, where there is no note', () => {
    const folder = settings(undefined, [ID]);
    expect(findClientSession({ CLAUDE_CONFIG_DIR: folder, CLAUDE_CODE_SESSION_ID: ID })?.id).toBe(ID);
  });

  test('has no transcript before its first message', () => {
    const folder = settings({ pid: parent?.pid, sessionId: ID });
    expect(findClientSession({ CLAUDE_CONFIG_DIR: folder })).toEqual({ id: ID });
  });

  test.each([
    ['of an earlier process with the same pid', { pid: parent?.pid, sessionId: ID, procStart: '1' }],
    ['of another pid', { pid: 1, sessionId: ID }],
    ['that is something else', { hello: 'world' }],
    ['whose id leads elsewhere', { pid: parent?.pid, sessionId: '../../etc/passwd' }],
  ])('is not told from a note %s', (_, note) => {
    expect(findClientSession({ CLAUDE_CONFIG_DIR: settings(note, [ID]) })).toBeUndefined();
  });

  test('is not told where the agent keeps none', () => {
    expect(findClientSession({ CLAUDE_CONFIG_DIR: join(temporaryFolder(), 'none') })).toBeUndefined();
  });
});
