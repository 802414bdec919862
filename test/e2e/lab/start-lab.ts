/** Starts `cuvette lab serve` as a user does, with the model that ships. */

import { type Home, kill, type RunningCli, startCli, waitFor } from '../harness.ts';
import { PATIENCE } from './patience.ts';

export interface ServedLab {
  cli: RunningCli;
  /** As it was printed. */
  url: string;
  /** Empty if it was not printed. */
  token: string;
}

export async function startLab(
  home: Home,
  args: string[] = [],
  env: Record<string, string | undefined> = {},
): Promise<ServedLab> {
  const cli = startCli(['lab', 'serve', '--model', 'demo', '--port', '0', ...args], {
    home,
    cwd: home.project(),
    env,
    timeout: PATIENCE,
  });
  await waitFor('the lab listens', () => /Ctrl-C stops it/.test(cli.stdout()) || cli.child.exitCode !== null);
  const find = (pattern: RegExp) => pattern.exec(cli.stdout())?.[1] ?? '';
  return { cli, url: find(/Endpoint: (\S+)/), token: find(/Token: +(\S+)/) };
}

export async function stopLab({ cli }: { cli: RunningCli }): Promise<number | null> {
  kill(cli.child.pid ?? 0, 'SIGTERM');
  return (await cli.done).code;
}
