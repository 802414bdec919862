import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { until } from '../../sessions/fake-keepers.ts';
import { temporaryFolder } from '../../temporary-folder.ts';
import { jsonOf, openWorkbench } from './open-workbench.ts';

describe('the routes of sessions', () => {
  it('list the default session of a folder before anything has run in it, and run code in it by its id', async () => {
    const { get, post, sessions } = await openWorkbench();
    const { sessions: listed } = await get('/sessions');
    expect(listed).toMatchObject([{ is_default: true, is_live: false, executions: 0, running: null, queued: 0 }]);
    const started = await post(`/sessions/${listed[0].id}/executions`, { code: 'print x' });
    expect([started.status, await started.json()]).toEqual([202, { execution: 1 }]);
    expect(sessions.all().map(({ id }) => id)).toEqual([listed[0].id]);
  });

  it('look at a stored session without opening it', async () => {
    const { run, get, sessions, create } = await openWorkbench({ maxSessions: '1' });
    const { session } = await run('print x');
    const other = await create();
    expect(sessions.all().map(({ id }) => id)).toEqual([other]);
    const { executions } = await get(`/sessions/${session.id}/executions`);
    expect(executions).toMatchObject([{ number: 1, text_length: 2 }]);
    expect((await get('/sessions')).sessions).toHaveLength(2);
    expect(sessions.all().map(({ id }) => id)).toEqual([other]);
  });

  it('tell the interpreters of a session, its limits and its folder', async () => {
    const { get, project } = await openWorkbench();
    const about = await get('/sessions/default');
    expect(about).toMatchObject({ is_default: true, workspace: project, limits: { timeout: 300 } });
    expect(about.interpreters[0]).toMatchObject({ name: 'builtin', kind: 'python', language: 'python', pid: null });
  });

  it('answer 404 with a sentence for a session that there is none of', async () => {
    const { app } = await openWorkbench();
    for (const path of ['/sessions/nothing', '/sessions/nothing/executions', '/sessions/nothing/events']) {
      const answer = await app.request(path);
      expect([answer.status, (await jsonOf(answer)).code]).toEqual([404, 'unknown_session']);
    }
  });

  it('remove a session with its history', async () => {
    const { app, run, get } = await openWorkbench();
    const { session } = await run('print x');
    expect((await app.request(`/sessions/${session.id}`, { method: 'DELETE' })).status).toBe(200);
    expect((await get('/sessions')).sessions.map(({ id }: { id: string }) => id)).not.toContain(session.id);
    expect((await app.request(`/sessions/${session.id}/executions`)).status).toBe(404);
  });

  it('export a session as a notebook and as a script', async () => {
    const { run, app } = await openWorkbench();
    await run('print x');
    const notebook = await app.request('/sessions/default/export');
    expect(notebook.headers.get('content-disposition')).toMatch(/^attachment; .*\.ipynb"$/);
    expect(await notebook.json()).toMatchObject({ nbformat: 4, cells: [{ source: ['print x'] }] });
    expect(await (await app.request('/sessions/default/export?format=py')).text()).toContain('print x');
  });
});

describe('the routes of executions', () => {
  it('page through a history, the oldest first', async () => {
    const { run, get } = await openWorkbench();
    for (const text of ['a', 'b', 'c']) await run(`print ${text}`);
    const page = await get('/sessions/default/executions?limit=2');
    expect(page).toMatchObject({ has_more: true, executions: [{ number: 2 }, { number: 3, origin: 'agent' }] });
    const before = await get('/sessions/default/executions?limit=2&before=2');
    expect(before).toMatchObject({ has_more: false, executions: [{ number: 1 }] });
  });

  it('tell an execution that runs, as far as it has come', async () => {
    const { get, sessions, zygotes } = await openWorkbench();
    await sessions.start({ code: 'wait' });
    await until(() => zygotes.keepers.length > 0 && zygotes.last().executed.length === 1);
    zygotes.last().print('so far\n');
    const { executions } = await get('/sessions/default/executions');
    expect(executions).toMatchObject([
      { state: 'running', outcome: null, outputs: [{ index: 0, type: 'stream', text: 'so far\n' }] },
    ]);
    expect((await get('/sessions')).sessions).toMatchObject([{ running: 1, queued: 0 }]);
  });

  it('believe the origin of a page only where its cookie let it in', async () => {
    const { post, get } = await openWorkbench();
    const page = { 'x-cuvette-origin': 'page' };
    await post('/sessions/default/executions', { code: 'print 1' }, page);
    await post('/sessions/default/executions', { code: 'print 2' }, { ...page, cookie: 'a=b' });
    const { executions } = await get('/sessions/default/executions');
    expect(executions.map(({ origin }: { origin: string }) => origin)).toEqual(['rest', 'page']);
  });

  it('interrupt what runs and what waits', async () => {
    const { app, sessions, get, zygotes } = await openWorkbench();
    const running = await sessions.start({ code: 'wait' });
    const waiting = await sessions.start({ code: 'wait' });
    await until(() => zygotes.keepers.length > 0 && zygotes.last().executed.length === 1);
    for (const number of [2, 1])
      expect((await app.request(`/sessions/default/executions/${number}/interrupt`, { method: 'POST' })).status).toBe(
        204,
      );
    await Promise.all([running.finished, waiting.finished]);
    const { executions } = await get('/sessions/default/executions');
    expect(executions.map(({ outcome }: { outcome: string }) => outcome)).toEqual(['cancelled', 'cancelled']);
  });

  it('read long text from the disk by offset, and find a word in it across the pieces that are read', async () => {
    const { run, get } = await openWorkbench();
    const text = `${'x'.repeat(300_000)} Needle one\n${'y'.repeat(90_000)}\nthe needle two`;
    await run(`print ${text}`);
    const at = (query: string) => get(`/sessions/default/executions/1/output?${query}`);
    expect(await at('offset=299999&limit=9')).toEqual({
      text: 'x Needle ',
      offset: 299_999,
      next: 300_008,
      length: 390_028,
    });
    expect(await at('offset=-5')).toEqual({ text: ' two\n', offset: 390_023, next: null, length: 390_028 });
    const found = await at('search=NEEDLE');
    expect(found.has_more).toBe(false);
    expect(found.matches).toEqual([
      { offset: 300_001, line: `${'x'.repeat(199)} Needle one` },
      { offset: 390_017, line: 'the needle two' },
    ]);
    expect(await at('search=needle&limit=1')).toMatchObject({ has_more: true, matches: [{ offset: 300_001 }] });
    expect(await at('search=n.edle')).toEqual({ matches: [], has_more: false });
  });

  it('leave what is large in an output to be fetched by itself, in a sandbox', async () => {
    const { sessions, zygotes, get, app } = await openWorkbench();
    const { finished } = await sessions.start({ code: 'wait' });
    await until(() => zygotes.keepers.length > 0 && zygotes.last().executed.length === 1);
    const png = Buffer.alloc(900_000, 7).toString('base64');
    const html = `<b>${'h'.repeat(20_000)}</b>`;
    zygotes.last().show({ type: 'display', data: { 'image/png': png, 'text/plain': 'a figure' }, metadata: { a: 1 } });
    zygotes.last().show({ type: 'result', data: { 'text/html': html, 'image/svg+xml': '<svg/>' }, metadata: {} });
    const told = async () => (await get('/sessions/default/executions')).executions[0].outputs;
    const running = await told();
    zygotes.last().finish();
    await finished;
    const stored = await told();
    expect(running[0]).toMatchObject({ index: 0, data: { 'text/plain': 'a figure' }, large: { 'image/png': 900_000 } });
    expect(stored[0]).toMatchObject({ large: { 'image/png': 900_000 }, metadata: { a: 1 } });
    expect(stored[1]).toMatchObject({ data: { 'image/svg+xml': '<svg/>' }, large: { 'text/html': html.length } });
    const part = (index: number, type: string) =>
      app.request(`/sessions/default/executions/1/outputs/${index}/${encodeURIComponent(type)}`);
    const figure = await part(0, 'image/png');
    expect(Buffer.alloc(900_000, 7).equals(Buffer.from(await figure.arrayBuffer()))).toBe(true);
    expect(figure.headers.get('content-security-policy')).toMatch(/^sandbox; default-src 'none'/);
    const page = await part(1, 'text/html');
    expect(await page.text()).toBe(html);
    expect(page.headers.get('content-security-policy')).toMatch(/^sandbox allow-scripts; default-src 'none'/);
    expect(page.headers.get('x-content-type-options')).toBe('nosniff');
    expect((await part(1, 'text/plain')).status).toBe(404);
    expect((await part(9, 'image/png')).status).toBe(404);
    expect((await part(0, '__proto__')).status).toBe(404);
  });
});

describe("the routes of a workspace's files", () => {
  it('list folders, and serve files whole or by a range, without running them', async () => {
    const { app, get, project } = await openWorkbench();
    mkdirSync(join(project, 'sub'));
    writeFileSync(join(project, 'sub', 'page.html'), '<script>1</script>');
    symlinkSync('/etc', join(project, 'out'));
    const names = (await get('/sessions/default/workspace')).entries.map(({ name }: { name: string }) => name);
    expect(names).toContain('sub');
    expect(names).not.toContain('out');
    expect(await get('/sessions/default/workspace?path=sub')).toMatchObject({
      path: 'sub',
      entries: [{ name: 'page.html', kind: 'file', size: 18 }],
      is_cut: false,
    });
    const file = '/sessions/default/workspace/file?path=sub/page.html';
    const shown = await app.request(file);
    expect(shown.headers.get('content-security-policy')).toMatch(/^sandbox; default-src 'none'/);
    const part = await app.request(`${file}&download=1`, { headers: { range: 'bytes=1-6' } });
    expect([part.status, await part.text()]).toEqual([206, 'script']);
    expect(part.headers.get('content-disposition')).toMatch(/^attachment/);
  });

  it.each(['out/passwd', '../secret', '/etc/passwd', 'missing', 'link', 'missing/below'])(
    'do not serve %s',
    async (path) => {
      const { app, project } = await openWorkbench();
      symlinkSync('/etc', join(project, 'out'));
      symlinkSync('/etc/passwd', join(project, 'link'));
      const answer = await app.request(`/sessions/default/workspace/file?path=${encodeURIComponent(path)}`);
      expect([400, 404]).toContain(answer.status);
    },
  );

  it('write a file, in a folder that is made for it, and never through a link', async () => {
    const { app, project } = await openWorkbench();
    const outside = temporaryFolder();
    symlinkSync(outside, join(project, 'out'));
    const put = (path: string, body: string) =>
      app.request(`/sessions/default/workspace/file?path=${encodeURIComponent(path)}`, { method: 'PUT', body });
    const written = await put('data/a.csv', 'a,b\n');
    expect([written.status, await written.json()]).toEqual([201, { path: 'data/a.csv', size: 4 }]);
    expect(readFileSync(join(project, 'data', 'a.csv'), 'utf8')).toBe('a,b\n');
    expect((await put('out/b.txt', 'x')).status).toBe(400);
    expect((await put('large.bin', 'x'.repeat(1001))).status).toBe(413);
  });

  it('refuse a file for which a workspace has no room', async () => {
    const { app, project } = await openWorkbench({}, { uploads: { largest: 0, quota: 10 } });
    writeFileSync(join(project, 'old.txt'), 'x'.repeat(8));
    const put = (body: string) => app.request('/sessions/default/workspace/file?path=new.txt', { method: 'PUT', body });
    expect((await put('abc')).status).toBe(413);
    expect((await put('ab')).status).toBe(201);
    expect((await put('ab')).status).toBe(507);
  });
});
