/** Maps the name in an import statement to the distribution that provides it; never by guessing. */

import { normalise } from './environment.ts';
import table from './package-names.json' with { type: 'json' };

const IMPORTS: Record<string, string> = table.imports;
const KNOWN = new Set(table.known);
const FAMILIAR = [...new Set([...KNOWN, ...Object.keys(IMPORTS).filter((name) => !name.includes('.'))])];

/** As the index has them; a name that began with a dash would be an option to the installer. */
const POSSIBLE = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/;

export type Resolution =
  /** In the table: installed without further ado. */
  | { kind: 'known'; distribution: string }
  /** So close to a familiar name that it is likely a slip, and may be a trap. */
  | { kind: 'misspelt'; suggestion: string }
  /** No distribution can have that name. */
  | { kind: 'impossible' }
  /** Possibly a distribution of that very name. */
  | { kind: 'unknown'; distribution: string };

export function resolvePackage(module: string): Resolution {
  for (let name = module; name; name = name.slice(0, Math.max(0, name.lastIndexOf('.')))) {
    const mapped = Object.hasOwn(IMPORTS, name) ? IMPORTS[name] : undefined;
    if (mapped) return { kind: 'known', distribution: mapped };
  }
  const top = module.split('.')[0] ?? module;
  const distribution = normalise(top);
  if (KNOWN.has(distribution)) return { kind: 'known', distribution };
  if (!POSSIBLE.test(distribution)) return { kind: 'impossible' };
  const suggestion = FAMILIAR.find((name) => isSlip(top.toLowerCase(), name.toLowerCase()));
  if (suggestion) return { kind: 'misspelt', suggestion };
  return { kind: 'unknown', distribution };
}

/** One edit apart (a letter added, left out, replaced, or two neighbours swapped), or two in a long name. */
function isSlip(name: string, familiar: string): boolean {
  const allowed = Math.min(name.length, familiar.length) >= 8 ? 2 : 1;
  if (Math.abs(name.length - familiar.length) > allowed || Math.min(name.length, familiar.length) < 4) return false;
  return editDistance(name, familiar) <= allowed;
}

function editDistance(a: string, b: string): number {
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, index) => index)];
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1;
      let best = Math.min(at(rows, i - 1, j) + 1, (row[j - 1] ?? 0) + 1, at(rows, i - 1, j - 1) + cost);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        best = Math.min(best, at(rows, i - 2, j - 2) + 1);
      row.push(best);
    }
    rows.push(row);
  }
  return at(rows, a.length, b.length);
}

function at(rows: number[][], i: number, j: number): number {
  return rows[i]?.[j] ?? Number.POSITIVE_INFINITY;
}
