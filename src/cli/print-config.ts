/** Formats what `cuvette serve --print-config` shows: every setting, its value, where that came from, and its names. */

import type { SettingRow } from '../config.ts';

const HEAD = ['setting', 'value', 'from', 'flag', 'environment'];

export function printConfig(rows: SettingRow[], json = false): string {
  if (json) return `${JSON.stringify(rows, null, 2)}\n`;
  const table = [
    HEAD,
    ...rows.map(({ setting, value, source, flag, variables }) => [
      setting,
      cell(value),
      source,
      flag,
      variables.join(', '),
    ]),
  ];
  const widths = HEAD.map((_, column) => Math.max(...table.map((row) => row[column]?.length ?? 0)));
  return table
    .map((row) => `${row.map((text, i) => text.padEnd(widths[i] ?? 0)).join('  ')}`.trimEnd())
    .join('\n')
    .concat('\n');
}

function cell(value: SettingRow['value']): string {
  if (value === null) return 'none';
  return Array.isArray(value) ? value.join(',') || 'none' : String(value);
}
