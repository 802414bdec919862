/** Prints `cuvette help`, made from the commands, their flags and the settings, and `cuvette --version`. */

import { flagOf, SETTINGS } from '../settings.ts';
import { VERSION } from '../version.ts';
import { COMMAND_FLAGS, type Flag } from './command-flags.ts';

const COMMANDS = {
  'cuvette mcp': 'serve an agent over stdio (this is what the agent starts)',
  'cuvette run [FILE]': "run code from a file or from standard input in the agent's live session",
  'cuvette serve': 'serve HTTP (REST, LibreChat, MCP), and the shells of this folder, in the foreground',
  'cuvette ui': "show the agent's live session in a browser: see what it runs, and run code beside it",
  'cuvette call TOOL [JSON]': "call one of the agent's tools from the shell",
  'cuvette lab demo': 'look inside a language model: three directions, and which of them it uses',
  'cuvette lab serve': "serve a model to an agent's lab tools",
  'cuvette doctor': 'what works on this machine, what does not, and what to do about it',
  'cuvette help, --version': '',
};

const HOME = row('', 'CUVETTE_HOME', 'one folder for everything, in place of ~/.cache and ~/.local/share');

export async function main([first, second]: string[]): Promise<number> {
  const isVersion = first === '--version' || first === '-v';
  process.stdout.write(`${isVersion ? VERSION : second === '--json' ? JSON.stringify(helpData()) : helpText()}\n`);
  return 0;
}

/** For programs: scripts/references.mjs makes the tables of the pages from it. */
export function helpData(): object {
  const settings = SETTINGS.map((setting) => ({ ...setting, flag: flagOf(setting) }));
  const flags = Object.entries(COMMAND_FLAGS).map(([command, all]) => [
    command,
    Object.entries(all).map(([name, flag]) => ({ ...flag, flag: flagText(name, flag) })),
  ]);
  return { commands: COMMANDS, settings, flags: Object.fromEntries(flags) };
}

export function helpText(): string {
  const commands = Object.entries(COMMANDS).map(([command, about]) => `  ${command.padEnd(25)}${about}`.trimEnd());
  const groups = [...new Set(SETTINGS.map(({ group }) => group))].map((group) => {
    const settings = SETTINGS.filter((setting) => setting.group === group);
    const whose = settings.some(({ isService }) => !isService) ? 'mcp and serve' : 'serve';
    const rows = settings.map((setting) =>
      row(
        `${flagOf(setting)} ${setting.value}`,
        setting.variables[0] ?? '',
        withDefault(setting.about, setting.default),
      ),
    );
    return [`Settings of ${whose}: ${group.charAt(0).toLowerCase()}${group.slice(1)}`, ...rows];
  });
  const flags = Object.entries(COMMAND_FLAGS).map(([command, all]) => [
    `Flags of ${command}`,
    ...Object.entries(all).map(([name, flag]) =>
      row(flagText(name, flag), flag.variable ?? '', withDefault(flag.about, flag.default)),
    ),
  ]);
  const title = `Cuvette ${VERSION}: live code sessions for AI agents, on your own machine.`;
  return [[title], commands, ...groups, ...flags, ['Of every command', HOME]]
    .map((part) => part.join('\n'))
    .join('\n\n');
}

function flagText(name: string, { short, value = '' }: Flag): string {
  return `${short ? `-${short}, ` : ''}--${name} ${value}`.trim();
}

function row(flag: string, variable: string, about: string): string {
  return `  ${flag.padEnd(25)} ${variable.padEnd(27)} ${about.replaceAll('`', '')}`;
}

function withDefault(about: string, fallback: string | undefined): string {
  return fallback === undefined || fallback === 'none' || fallback === 'off' ? about : `${about}; default ${fallback}`;
}
