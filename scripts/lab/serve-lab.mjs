/** Serves a lab with the torch engine by the program as it ships, in a process of its own. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';

const MAIN = resolve(import.meta.dirname, '..', '..', 'dist', 'main.js');

export async function serveLab({ model, home, python, cwd }) {
  const args = ['lab', 'serve', '--engine', 'torch', '--dtype', 'float32', '--model', model, '--port', '0'];
  const env = { ...process.env, CUVETTE_HOME: home, CUVETTE_TORCH_PYTHON: python };
  const child = spawn(process.execPath, [MAIN, ...args], { cwd, env, stdio: ['ignore', 'pipe', 'inherit'] });
  const exit = once(child, 'exit');
  let told = '';
  const isReady = new Promise((ready) => {
    child.stdout.setEncoding('utf8').on('data', (text) => {
      told += text;
      if (told.includes('Ctrl-C stops it')) ready();
    });
  });
  const hasEnded = await Promise.race([isReady.then(() => false), exit.then(() => true)]);
  if (hasEnded) throw new Error('The lab could not be served.');
  const find = (pattern) => pattern.exec(told)?.[1] ?? '';
  return {
    url: find(/Endpoint: (\S+)/),
    token: find(/Token: +(\S+)/),
    async stop() {
      child.kill('SIGTERM');
      await exit;
    },
  };
}
