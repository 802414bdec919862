import { expect, test } from 'vitest';
import { COMMAND_FLAGS } from '../../src/cli/command-flags.ts';
import { helpData, helpText } from '../../src/cli/help.ts';
import { explainConfig } from '../../src/config.ts';
import { SETTINGS } from '../../src/settings.ts';

const lines = helpText().split('\n');

test.each(explainConfig({}, {}))(
  'help has a line for the setting $setting, with its flag and first variable',
  (row) => {
    const found = lines.find((line) => line.startsWith(`  ${row.flag} `) && line.includes(` ${row.variables[0]} `));
    expect(found).toBeDefined();
  },
);

test('help has a line for every flag of every command', () => {
  const flags = Object.values(COMMAND_FLAGS).flatMap((all) => Object.keys(all));
  expect(flags.filter((flag) => !lines.some((line) => line.includes(`--${flag} `)))).toEqual([]);
});

test('no line of help is longer than 160 characters', () => {
  expect(lines.filter((line) => line.length > 160)).toEqual([]);
});

test('help as JSON has every setting with a description, a default and its names', () => {
  expect(helpData()).toMatchObject({
    settings: expect.arrayContaining([
      expect.objectContaining({ name: 'maxSessions', flag: '--max-sessions', value: 'N', default: '50' }),
      expect.objectContaining({ name: 'autoInstall', flag: '--no-auto-install', value: '', default: 'on' }),
      expect.objectContaining({ name: 'sessionMemory', default: '2GiB', group: 'Confinement' }),
    ]),
  });
  expect(SETTINGS.filter(({ about, group, variables }) => !about || !group || variables.length === 0)).toEqual([]);
});
