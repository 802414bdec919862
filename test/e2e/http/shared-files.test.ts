/** Checks files of agents and skills, which the users of a tenant share, and that nobody else reaches them. */

import { exportSPKI } from 'jose';
import { describe, expect, test } from 'vitest';
import { beginTurn, uploaded } from './librechat-turn.ts';
import { type Caller, formOf, ok, type UploadAnswer, useService } from './service.ts';
import { bearer, type Claims, publicKey } from './tokens.ts';

const KEY = 'a-key-for-old-clients';
const service = await useService({
  env: { CUVETTE_API_KEY: KEY, CODEAPI_JWT_PUBLIC_KEY: await exportSPKI(publicKey) },
});
const as = async (claims: Claims) => service.as(await bearer(claims));
const ada = await as({ sub: 'ada' });
const bob = await as({ sub: 'bob' });

const AGENT = { kind: 'agent', id: 'agent_abc' };
const SKILL = { kind: 'skill', id: '64b7f0c2a1b2c3d4e5f60709', version: '3' };

async function upload(caller: Caller, fields: Record<string, string>, isBefore = true): Promise<UploadAnswer> {
  const file = { name: 'data.csv', content: 'shared' };
  const form = formOf(isBefore ? [...Object.entries(fields), file] : [file, ...Object.entries(fields)]);
  return ok(await caller.send('POST', '/v1/upload', form)).json<UploadAnswer>();
}

const pathOf = ({ storage_session_id, files }: UploadAnswer) => `${storage_session_id}/objects/${files[0]?.fileId}`;
const query = (fields: Record<string, string>) => new URLSearchParams(fields).toString();
const lookUp = async (caller: Caller, file: UploadAnswer, fields: Record<string, string>) =>
  (await caller.get(`/v1/sessions/${pathOf(file)}?${query(fields)}`)).status;

/** What code of the caller's sees of the file, by a reference with these fields. */
async function read(caller: Caller, file: UploadAnswer, { id, ...fields }: Record<string, unknown>): Promise<string> {
  const reference = { ...fields, resource_id: id, storage_session_id: file.storage_session_id, name: 'data.csv' };
  const answer = await caller.bash('cat data.csv', { files: [{ ...reference, id: file.files[0]?.fileId }] });
  return answer.stdout;
}

describe.each([
  ['an agent', AGENT],
  ['a skill', SKILL],
])('a file of %s', (_, resource) => {
  test('is there for every user of the tenant who names what it belongs to', async () => {
    for (const isBefore of [true, false]) {
      const file = await upload(ada, resource, isBefore);
      for (const caller of [ada, bob]) {
        expect(await lookUp(caller, file, resource)).toBe(200);
        expect(await read(caller, file, resource)).toBe('shared');
        const path = pathOf(file).replace('/objects/', '/');
        expect((await caller.get(`/v1/download/${path}?${query(resource)}`)).text).toBe('shared');
        const list = ok(await caller.get(`/v1/files/${file.session_id}?detail=full&${query(resource)}`)).json<[]>();
        expect(list).toHaveLength(1);
      }
    }
  });

  test('is not there for other tenants or for callers with a key', async () => {
    const file = await upload(ada, resource);
    const stranger = await as({ sub: 'bob', tenant: 'another' });
    const withKey = service.as({ 'x-api-key': KEY });
    for (const caller of [stranger, withKey]) {
      expect(await lookUp(caller, file, resource)).toBe(404);
      expect(await read(caller, file, resource)).toBe('');
      expect(ok(await caller.get(`/v1/files/${file.session_id}?${query(resource)}`)).text).toBe('[]');
      const removal = await caller.send('DELETE', `/v1/sessions/${pathOf(file)}?${query(resource)}`);
      expect(removal.status).toBe(404);
    }
    expect(await lookUp(ada, file, resource)).toBe(200);
  });

  test('is not there for a user who names something else that it belongs to', async () => {
    const file = await upload(ada, resource);
    const others: Record<string, string>[] = [
      {},
      { kind: 'user', id: resource.id },
      { ...resource, id: 'another' },
      { ...resource, id: '' },
      { ...resource, kind: resource.kind === 'agent' ? 'skill' : 'agent' },
      ...('version' in resource
        ? [
            { ...resource, version: '4' },
            { kind: 'skill', id: resource.id },
          ]
        : []),
    ];
    for (const other of others) {
      expect([other, await lookUp(bob, file, other)]).toEqual([other, 404]);
      expect([other, await read(bob, file, other)]).toEqual([other, '']);
      expect([other, await lookUp(ada, file, other)]).toEqual([other, 200]);
    }
  });

  test('is there in every call of a turn, even when the client leaves out what it belongs to', async () => {
    const file = await upload(ada, resource);
    const version = 'version' in resource ? Number(resource.version) : undefined;
    const kind = version === undefined ? 'agent' : 'skill';
    const turn = beginTurn(bob, '3.2', [uploaded(file, { kind, resource: resource.id, version })]);
    const first = await turn.call('cat data.csv; echo x > out.txt');
    expect(first.files.find(({ inherited }) => inherited)).toMatchObject({
      kind,
      resource_id: resource.id,
      ...(version !== undefined && { version }),
    });
    expect((await turn.call('cat data.csv out.txt')).stdout).toBe('sharedx\n');
    expect(await read(bob, file, {})).toBe('shared');
    expect(await read(await as({ sub: 'cleo' }), file, {})).toBe('');
  });

  test('is deleted for all by anyone who may use it', async () => {
    const file = await upload(ada, resource);
    expect((await bob.send('DELETE', `/v1/sessions/${pathOf(file)}`)).status).toBe(404);
    expect((await bob.send('DELETE', `/v1/sessions/${pathOf(file)}?${query(resource)}`)).status).toBe(200);
    expect(await lookUp(ada, file, resource)).toBe(404);
  });
});

test('a file of a user belongs to that user alone, whatever is claimed about it', async () => {
  for (const fields of [{ kind: 'user', id: 'agent_abc' }, { id: 'agent_abc' }, { kind: 'skill', id: 'agent_abc' }]) {
    const file = await upload(ada, fields);
    for (const claim of [fields, AGENT, { ...SKILL, id: 'agent_abc' }]) {
      expect(await lookUp(bob, file, claim)).toBe(404);
      expect(await read(bob, file, claim)).toBe('');
    }
  }
});

test('what code makes of a shared file belongs to its user alone', async () => {
  const file = await upload(ada, AGENT);
  const turn = beginTurn(bob, '3.9', [uploaded(file, { kind: 'agent', resource: AGENT.id })]);
  const { files } = await turn.call('echo private >> data.csv');
  const [changed] = files;
  const path = `/v1/sessions/${changed?.storage_session_id}/objects/${changed?.id}?${query(AGENT)}`;
  expect([(await bob.get(path)).status, (await ada.get(path)).status]).toEqual([200, 404]);
  expect(await read(ada, file, AGENT)).toBe('shared');
});
