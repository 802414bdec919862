/** Opens an address in the user's browser, if there is one; says nothing if there is none, because the address is printed, too. */

import { spawn } from 'node:child_process';

const COMMANDS: Partial<Record<NodeJS.Platform, string[]>> = {
  darwin: ['open'],
  win32: ['cmd', '/c', 'start', ''],
};

export function openBrowser(url: string): void {
  const [command = '', ...args] = COMMANDS[process.platform] ?? ['xdg-open'];
  const child = spawn(command, [...args, url], { detached: true, stdio: 'ignore' });
  child.once('error', () => {});
  child.unref();
}
