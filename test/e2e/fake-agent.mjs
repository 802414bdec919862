/**
 * Acts as an agent as far as Cuvette can tell: a process that starts a server over stdio, and shells.
 * Its own orders come from the test, as messages: { id, tool, args } or { id, shell, cwd }.
 */

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

const [main, ...args] = process.argv.slice(2);
const server = spawn(process.execPath, [main, 'mcp', ...args], { stdio: ['pipe', 'pipe', 'ignore'] });
const waiting = new Map();
let count = 0;

createInterface({ input: server.stdout }).on('line', (line) => {
  const message = JSON.parse(line);
  waiting.get(message.id)?.(message.result ?? message.error);
});

const send = (message) => server.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);

function ask(method, params) {
  count += 1;
  const id = count;
  return new Promise((resolve) => {
    waiting.set(id, resolve);
    send({ id, method, params });
  });
}

function shell(command, cwd) {
  const child = spawn('bash', ['-c', command], { cwd, stdio: ['ignore', 'pipe', 'pipe'] });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (data) => {
    stdout += data;
  });
  child.stderr.on('data', (data) => {
    stderr += data;
  });
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, stdout, stderr })));
}

process.on('message', async (order) => {
  const result = order.tool
    ? await ask('tools/call', { name: order.tool, arguments: order.args ?? {} })
    : await shell(order.shell, order.cwd);
  process.send({ id: order.id, result });
});
process.on('disconnect', () => process.exit(0));

await ask('initialize', {
  protocolVersion: '2025-06-18',
  capabilities: {},
  clientInfo: { name: 'fake', version: '1' },
});
send({ method: 'notifications/initialized' });
process.send({ id: 0, result: { pid: server.pid } });
