/** Writes times, sizes and counts as people read them. */

const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const day = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric' });
const count = new Intl.NumberFormat('en');

export function formatCount(value: number): string {
  return count.format(value);
}

/** `3 ms`, `1.24 s`, `2 min 5 s`. */
export function formatSeconds(seconds: number): string {
  if (seconds < 0.001) return '< 1 ms';
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 10) return `${seconds.toFixed(2)} s`;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB'];

export function formatBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < UNITS.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit] ?? ''}`;
}

export function formatClock(iso: string): string {
  const date = new Date(iso);
  return Number.isNaN(date.valueOf()) ? '' : clock.format(date);
}

/** `just now`, `5 min ago`, `3 h ago`, `Nov 2`. */
export function formatAgo(iso: string, now: number): string {
  const minutes = (now - Date.parse(iso)) / 60_000;
  if (Number.isNaN(minutes)) return '';
  if (minutes < 1) return 'just now';
  if (minutes < 60) return `${Math.floor(minutes)} min ago`;
  if (minutes < 24 * 60) return `${Math.floor(minutes / 60)} h ago`;
  return day.format(new Date(iso));
}
