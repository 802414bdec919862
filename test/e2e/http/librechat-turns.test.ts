/** Makes several calls of one turn, with the references that each release of LibreChat keeps between them. */

import { describe, expect, test } from 'vitest';
import { waitFor } from '../harness.ts';
import { beginTurn, type Release, uploaded } from './librechat-turn.ts';
import { anotherService, formOf, ok, type UploadAnswer, unusedMark, useService } from './service.ts';

const service = await useService();
const RELEASES: Release[] = ['3.1', '3.2', '3.9'];

/** A program for the language that the release offers its models. */
const script = (release: Release, shell: string) =>
  release === '3.1'
    ? `import subprocess; print(subprocess.run(["bash", "-c", ${JSON.stringify(shell)}], capture_output=True, text=True).stdout, end="")`
    : shell;

describe.each(RELEASES)('with the client of release %s,', (release) => {
  const begin = async (...files: [name: string, content: string][]) => {
    const answers = [];
    for (const [name, content] of files) answers.push(uploaded(await service.upload(name, content)));
    return beginTurn(service, release, answers);
  };

  test('uploads of several sessions and files of earlier calls are there in every later call', async () => {
    const turn = await begin(['a.csv', 'a'], ['b.csv', 'b']);
    await turn.call(script(release, 'cat a.csv b.csv > first.txt'));
    await turn.call(script(release, 'cat first.txt a.csv > second.txt'));
    await turn.call(script(release, 'true'));
    const { stdout, stderr, run } = await turn.call(script(release, 'cat a.csv b.csv first.txt second.txt'));
    expect([stdout, stderr, run.message]).toEqual(['abababa', '', null]);
  });

  test('only what code has written is shown as new and can be downloaded from where the client looks', async () => {
    const turn = await begin(['a.csv', 'a'], ['b.csv', 'b']);
    const answer = await turn.call(script(release, 'cp a.csv new.txt; echo more >> b.csv'));
    expect(turn.attachments.map(({ name }) => name).sort()).toEqual(['b.csv', 'new.txt']);
    for (const { id } of turn.attachments) ok(await service.get(`/download/${answer.session_id}/${id}`));
    expect((await turn.call(script(release, 'cat b.csv new.txt'))).stdout).toBe('bmore\na');
    expect(turn.attachments).toHaveLength(2);
  });

  test('a file that was changed stays changed', async () => {
    const turn = await begin(['a.csv', 'old']);
    await turn.call(script(release, 'printf new > a.csv'));
    await turn.call(script(release, 'echo another > other.txt'));
    expect((await turn.call(script(release, 'cat a.csv'))).stdout).toBe('new');
  });
});

describe.each<Release>(['3.2', '3.9'])('what code removes, with the client of release %s,', (release) => {
  const beginWith = async (...names: string[]) => {
    const primed = [];
    for (const name of names) primed.push(uploaded(await service.upload(name, name)));
    return { turn: beginTurn(service, release, primed), primed };
  };

  test('is gone in later calls, whether it was uploaded or made by code', async () => {
    const { turn } = await beginWith('up.txt', 'kept.txt');
    await turn.call('echo x > made.txt');
    const removing = await turn.call('rm up.txt; mv made.txt moved.txt');
    expect(removing.deleted_files?.sort()).toEqual(['made.txt', 'up.txt']);
    for (const _ of [1, 2]) expect((await turn.call('ls')).stdout).toBe('kept.txt\nmoved.txt\n');
  });

  test('by renaming is gone under its old name and stays under the new one', async () => {
    const { primed } = await beginWith('a.txt');
    const [file] = primed;
    if (!file) throw new Error('nothing was uploaded');
    const turn = beginTurn(service, release, [file, { ...file, name: 'b.txt' }]);
    await turn.call('rm a.txt');
    expect((await turn.call('ls; cat b.txt')).stdout).toBe('b.txt\na.txt');
  });

  test('comes back if code makes it again or if it is uploaded again', async () => {
    const { turn } = await beginWith('a.txt');
    await turn.call('rm a.txt');
    await turn.call('echo again > a.txt');
    expect((await turn.call('cat a.txt')).stdout).toBe('again\n');
    await turn.call('rm a.txt');
    const anew = beginTurn(service, release, [...turn.held, uploaded(await service.upload('a.txt', 'anew'))]);
    expect((await anew.call('cat a.txt')).stdout).toBe('anew');
  });

  test('comes back in the next turn, which begins with a look at its files', async () => {
    const { turn, primed } = await beginWith('a.txt');
    await turn.call('rm a.txt');
    expect((await turn.call('ls')).stdout).toBe('');
    for (const { session, id } of primed) ok(await service.get(`/sessions/${session}/objects/${id}?kind=user&id=u`));
    expect((await beginTurn(service, release, primed).call('cat a.txt')).stdout).toBe('a.txt');
  });

  test('stays for others if it belongs to an agent', async () => {
    const form = formOf([['kind', 'agent'], ['id', 'agent_1'], { name: 'a.txt', content: 'shared' }]);
    const answer = ok(await service.send('POST', '/upload', form)).json<UploadAnswer>();
    const file = uploaded(answer, { kind: 'agent', resource: 'agent_1' });
    const [one, another] = [beginTurn(service, release, [file]), beginTurn(service, release, [file])];
    await one.call('rm a.txt');
    expect((await another.call('cat a.txt')).stdout).toBe('shared');
  });

  test('stays if the call was stopped or if not all that it wrote could be kept', async () => {
    const { turn } = await beginWith('a.txt');
    const files = turn.held.map(({ id, name, session }) => ({ id, name, storage_session_id: session, kind: 'user' }));
    const stop = new AbortController();
    const mark = unusedMark(service.home);
    const code = `rm a.txt; touch ${mark.path}; sleep 60`;
    const stopped = service.post('/exec', { lang: 'bash', code, files }, { signal: stop.signal });
    const seen = expect(stopped).rejects.toThrow();
    await waitFor('the code has removed its file', () => mark.isThere());
    stop.abort();
    await seen;
    expect((await turn.call('cat a.txt')).stdout).toBe('a.txt');
    const full = await turn.call('mv a.txt moved.txt; for i in $(seq 1 200); do echo > "$i"; done');
    expect(full.run.message).toMatch(/the first 200 are kept/);
    expect(full.deleted_files).toBeUndefined();
    expect((await turn.call('cat a.txt')).stdout).toBe('a.txt');
  });
});

test('what code has removed from its session stays removed when the session is opened again', async () => {
  const entity_id = 'removed-for-good';
  const first = await anotherService({ home: service.home });
  await first.upload('up.txt', 'up', { entity_id });
  await first.bash('echo 1 > made.txt', { entity_id });
  await first.bash('echo 2 > made.txt; echo kept > kept.txt', { entity_id });
  expect((await first.bash('rm up.txt made.txt; ls', { entity_id })).stdout).toBe('kept.txt\n');
  await first.stop();
  const again = await anotherService({ home: service.home });
  expect((await again.bash('ls', { entity_id })).stdout).toBe('kept.txt\n');
});

test('a reference without the fields that LibreChat adds is taken as it is each time', async () => {
  const { session_id, files } = await service.upload('a.txt', 'a');
  const reference = { id: files[0]?.id, session_id, name: 'a.txt' };
  for (const _ of [1, 2]) {
    const { stdout, deleted_files } = await service.bash('cat a.txt; rm a.txt', { files: [reference] });
    expect([stdout, deleted_files]).toEqual(['a', ['a.txt']]);
  }
});

test('the id of a file is enough to find it, whichever session is named beside it', async () => {
  const { files } = await service.upload('a.txt', 'found');
  for (const session_id of ['x'.repeat(21), 'not an id', '', null]) {
    const reference = { id: files[0]?.id, session_id, name: 'a.txt' };
    expect((await service.bash('cat a.txt', { files: [reference] })).stdout).toBe('found');
  }
});

test('the list of files is empty for an id that nobody can have, whatever the id looks like', async () => {
  for (const id of ['short', 'x'.repeat(21), 'x'.repeat(500), 'a.b', '%20', '%2e%2e%2fetc', "' OR 1=1 --"])
    for (const detail of ['', '?detail=summary', '?detail=full', '?detail=normalized']) {
      const reply = await service.get(`/v1/files/${id.replaceAll(' ', '%20')}${detail}`);
      expect([id, reply.status, reply.text]).toEqual([id, 200, '[]']);
    }
});
