import { describe, expect, it } from 'vitest';
import { until } from '../../sessions/fake-keepers.ts';
import { openWorkbench } from './open-workbench.ts';

const VARIABLES = '/sessions/default/interpreters/builtin/variables';

describe('the routes of variables', () => {
  it('list what a running interpreter has, and nothing of one that does not run', async () => {
    const { get, run, zygotes } = await openWorkbench();
    expect(await get(VARIABLES)).toEqual({ variables: [] });
    await run('print x');
    zygotes.last().variables = [{ name: 'x', type: 'int' }];
    expect(await get(VARIABLES)).toEqual({ variables: [{ name: 'x', type: 'int' }] });
  });

  it('pass on which part of which value is asked for', async () => {
    const { get, run, zygotes } = await openWorkbench();
    await run('print x');
    const path = `d['a/b//c%25 ü'][3].x`;
    const answer = await get(
      `${VARIABLES}/${encodeURIComponent(path)}?offset=5&limit=10&columns=2:4&sort=the%20name&desc=1&filter=%26`,
    );
    expect(answer).toEqual({ kind: 'text', type: 'str', text: path, length: path.length });
    expect(zygotes.last().looked).toEqual([
      { path, offset: 5, limit: 10, columns: [2, 4], sort: 'the name', desc: true, filter: '&' },
    ]);
  });

  it('answer 409 with the number of the execution that runs', async () => {
    const { app, sessions, zygotes } = await openWorkbench();
    await sessions.start({ code: 'wait' });
    await until(() => zygotes.keepers.length > 0 && zygotes.last().executed.length > 0);
    for (const path of [VARIABLES, `${VARIABLES}/x`]) {
      const response = await app.request(`${path}?wait=0`);
      expect(response.status).toBe(409);
      expect(await response.json()).toMatchObject({ code: 'session_busy', execution: 1 });
    }
    zygotes.last().finish();
  });

  it('refuse a session that is not there, and make none', async () => {
    const { app, get } = await openWorkbench();
    const response = await app.request('/sessions/nowhere/interpreters/builtin/variables');
    expect([response.status, await response.json()]).toMatchObject([404, { code: 'unknown_session' }]);
    expect((await get('/sessions')).sessions).toHaveLength(1);
  });

  it('start an interpreter afresh, and complete code', async () => {
    const { app, get, post, run, zygotes } = await openWorkbench();
    await run('print x');
    const completed = await post('/sessions/default/interpreters/builtin/complete', { code: 'x.re', cursor: 4 });
    expect(await completed.json()).toEqual({ matches: ['completed'], start: 0, end: 4 });
    zygotes.last().variables = [{ name: 'x', type: 'int' }];
    const restarted = await app.request('/sessions/default/interpreters/builtin/restart', { method: 'POST' });
    expect(restarted.status).toBe(204);
    expect(await get(VARIABLES)).toEqual({ variables: [] });
  });
});
