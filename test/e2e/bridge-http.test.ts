/** Calls the bridge's socket by plain HTTP and by the command names of the python-interpreter server, and checks that both reach the agent's live session. */

import { execFile, spawn } from 'node:child_process';
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { beforeAll, describe, expect, test } from 'vitest';
import { TOOLS } from '../../src/tools/registry.ts';
import { startFakeAgent } from './fake-agent.ts';
import { type Agent, gone, MAIN, startAgent, useHome, waitFor } from './harness.ts';

const home = useHome({ preload: 'none' });
const cwd = home.project();
const DIST = dirname(MAIN);
let agent: Agent;
let socket: string;

beforeAll(async () => {
  agent = await startAgent({ home, cwd });
  await agent.execute('x = 20');
  socket = String((await agent.call('get_session_info')).structured.socket_path);
});

/** As anybody types it. */
async function curl(body: string, more: string[] = []): Promise<{ status: number; body: Record<string, string> }> {
  const args = ['-sS', '--unix-socket', socket, '-w', '\n%{http_code}', ...more];
  const { stdout } = await promisify(execFile)('curl', [...args, '-d', body, 'http://localhost/execute'], {
    maxBuffer: 1e8,
  });
  const [, text = '', status] = /^([\s\S]*)\n(\d+)$/.exec(stdout) ?? [];
  return { status: Number(status), body: JSON.parse(text) };
}

describe('POST /execute on the socket', () => {
  test("shares variables with the agent's live session in both directions", async () => {
    expect(await curl('{"code":"y = x + 1; print(\\"out\\"); y"}')).toEqual({
      status: 200,
      body: { result: 'out\n21' },
    });
    expect((await agent.execute('y * 2')).text).toBe('42');
  });

  test('answers a client that was written for the python-interpreter server', async () => {
    const client = `
import http.client, json, socket, sys
class Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(sys.argv[1])
connection = Connection("localhost")
connection.request("POST", "/execute", json.dumps({"code": sys.stdin.read(), "interpreter": "builtin"}), {"Content-Type": "application/json", "Connection": "keep-alive"})
answer = connection.getresponse()
print(answer.status, json.load(answer)["result"])
`;
    const python = spawn('python3', ['-c', client, socket]);
    python.stdin.end('total = 0\nfor n in range(4):\n    total += n\ntotal');
    let printed = '';
    python.stdout.on('data', (chunk) => {
      printed += chunk;
    });
    await new Promise((resolve) => python.once('close', resolve));
    expect(printed).toBe('200 6\n');
  });

  test('returns the traceback of code that fails as its result', async () => {
    const { status, body } = await curl('{"code":"1/0"}');
    expect([status, body.result]).toEqual([200, expect.stringMatching(/Traceback[\s\S]*ZeroDivisionError/)]);
  });

  test('cuts a long output and says where all of it is', async () => {
    const { body } = await curl('{"code":"print(\\"long\\" * 10000)"}');
    expect(body.result?.length).toBeLessThan(26_000);
    const [, path = ''] = / or in (\S+)\]$/.exec(body.result ?? '') ?? [];
    expect(existsSync(path)).toBe(true);
  });

  test('accepts code of several megabytes', async () => {
    const file = join(cwd, 'large.json');
    writeFileSync(file, JSON.stringify({ code: `large = "${'é'.repeat(2_000_000)}"; len(large)` }));
    expect(await curl(`@${file}`)).toEqual({ status: 200, body: { result: '2000000' } });
  });

  test.each([
    ['a request without code', '{"interpreter":"builtin"}', 400, /code/],
    ['a session that does not exist', '{"code":"1","session":"nobody"}', 404, /There is no session nobody/],
    ['a body that is not JSON', 'code=1', 400, /not JSON/],
  ])('says in detail what is wrong with %s', async (_, sent, status, why) => {
    expect(await curl(sent)).toEqual({ status, body: { detail: expect.stringMatching(why) } });
  });

  test('interrupts the code when its client disconnects, and the variables stay', async () => {
    const started = join(cwd, 'started');
    const code = `import time\nopen(${JSON.stringify(started)}, "w").close()\nwhile True: time.sleep(0.05)`;
    const client = spawn('curl', ['-s', '--unix-socket', socket, '-d', JSON.stringify({ code }), 'http://x/execute']);
    await waitFor('the code runs', () => existsSync(started));
    client.kill('SIGKILL');
    // It would wait for ever behind the other.
    const next = await agent.execute('x');
    expect(next.text).toBe('20');
    const { structured } = await agent.call('get_output', { execution: next.structured.execution - 1 });
    expect(structured.outcome).toBe('cancelled');
  });
});

describe('with settings made for the python-interpreter server,', () => {
  /** As npm links what `bin` names. */
  function installed(): string {
    const bin = join(home.root, 'bin');
    if (existsSync(bin)) return bin;
    mkdirSync(bin);
    symlinkSync(MAIN, join(bin, 'cuvette'));
    for (const name of ['mcp-py-server', 'mcp-py-client']) symlinkSync(join(DIST, `${name}.js`), join(bin, name));
    return bin;
  }

  test('mcp-py-server is a server over stdio that tells shells the name of Cuvette', async () => {
    const folder = home.project();
    const transport = new StdioClientTransport({
      command: join(installed(), 'mcp-py-server'),
      args: [],
      env: home.env(),
      cwd: folder,
    });
    const client = new Client({ name: 'old', version: '1' });
    await client.connect(transport);
    const { pid } = transport;
    const names = (await client.listTools()).tools.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(TOOLS.map(({ name }) => name)));
    const answer = await client.callTool({ name: 'execute', arguments: { code: '6 * 7', interpreter: 'builtin' } });
    expect(answer.content[0]).toMatchObject({ text: '42' });
    expect(client.getInstructions()).toContain(`${MAIN} run`);
    await client.close();
    await gone(pid ?? 0);
  });

  test("mcp-py-client runs code from standard input in the live session of the shell's agent", async () => {
    const bin = installed();
    const fake = await startFakeAgent(home, home.project());
    const shell = (command: string) => fake.shell(`PATH=${bin}:$PATH; ${command}`);
    expect(await shell('mcp-py-client <<\'PY\'\nshared = [1, 2]\nprint("from the shell")\nshared\nPY')).toEqual({
      code: 0,
      stdout: 'from the shell\n[1, 2]\n',
      stderr: '',
    });
    expect((await fake.tool('execute', { code: 'shared' })).content[0]?.text).toBe('[1, 2]');
    expect((await shell("mcp-py-client -i builtin <<<'len(shared)'")).stdout).toBe('2\n');
    expect((await shell("mcp-py-client --interpreter builtin <<<'len(shared)'")).stdout).toBe('2\n');
    const failed = await shell("mcp-py-client <<<'1/0'");
    expect([failed.code, failed.stderr]).toEqual([1, expect.stringContaining('ZeroDivisionError')]);
    expect((await shell('mcp-py-client --help')).stdout).toContain('-i, --interpreter NAME');
    await fake.close();
  });
});
