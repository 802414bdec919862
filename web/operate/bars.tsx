/** Draws counts by name as bars, the largest first. */

import { formatCount } from '../shell/format.ts';

interface BarsProps {
  counts: ReadonlyMap<string, number>;
  empty: string;
  isBad?(name: string): boolean;
}

const MOST = 14;

export function Bars({ counts, empty, isBad = () => false }: BarsProps) {
  const entries = [...counts].slice(0, MOST);
  const largest = Math.max(1, ...entries.map(([, count]) => count));
  if (entries.length === 0) return <p class="quiet">{empty}</p>;
  return (
    <div class="bars">
      {entries.map(([name, count]) => (
        <Bar key={name} name={name} count={count} share={count / largest} isBad={isBad(name)} />
      ))}
      {counts.size > MOST && <p class="quiet">and {formatCount(counts.size - MOST)} more</p>}
    </div>
  );
}

function Bar({ name, count, share, isBad }: { name: string; count: number; share: number; isBad: boolean }) {
  return (
    <>
      <span>{name}</span>
      <div class="track" aria-hidden="true">
        <div class={isBad ? 'fill bad' : 'fill'} style={{ width: `${Math.max(1, 100 * share)}%` }} />
      </div>
      <span>{formatCount(count)}</span>
    </>
  );
}
