/** Implements counters, gauges and histograms in Prometheus' text format. */

export type Labels = Record<string, string | number>;

/** A suffix is appended to the name of the metric. */
export interface Sample {
  suffix?: string;
  labels: Labels;
  value: number;
}

interface Metric {
  name: string;
  help: string;
  type: 'counter' | 'gauge' | 'histogram';
  samples(): Sample[];
}

export interface Registry {
  counter(name: string, help: string): (by: number, labels?: Labels) => void;
  gauge(name: string, help: string, read: () => number): void;
  histogram(name: string, help: string, buckets: number[]): (value: number, labels?: Labels) => void;
  render(): string;
  /** The samples of every metric, by its name. */
  read(): Record<string, Sample[]>;
}

export const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

export function createRegistry(): Registry {
  const metrics = new Map<string, Metric>();
  const add = (metric: Metric) => metrics.set(metric.name, metric);
  return {
    counter(name, help) {
      const series = createSeries((labels) => ({ labels, value: 0 }));
      add({ name, help, type: 'counter', samples: series.all });
      return (by, labels = {}) => {
        series.of(labels).value += by;
      };
    },
    gauge(name, help, read) {
      add({ name, help, type: 'gauge', samples: () => [{ labels: {}, value: read() }] });
    },
    histogram(name, help, buckets) {
      const series = createSeries((labels) => ({ labels, sum: 0, count: 0, within: buckets.map(() => 0) }));
      const samples = () =>
        series
          .all()
          .flatMap(({ labels, sum, count, within }) => [
            ...buckets.map((le, i) => ({ suffix: '_bucket', labels: { ...labels, le }, value: within[i] ?? 0 })),
            { suffix: '_bucket', labels: { ...labels, le: '+Inf' }, value: count },
            { suffix: '_sum', labels, value: sum },
            { suffix: '_count', labels, value: count },
          ]);
      add({ name, help, type: 'histogram', samples });
      return (value, labels = {}) => {
        const histogram = series.of(labels);
        histogram.sum += value;
        histogram.count += 1;
        histogram.within = histogram.within.map((count, i) => (value <= (buckets[i] ?? 0) ? count + 1 : count));
      };
    },
    render: () => [...metrics.values()].map(render).join(''),
    read: () => Object.fromEntries([...metrics.values()].map(({ name, samples }) => [name, samples()])),
  };
}

/** Keeps one value for each set of labels. */
function createSeries<T>(create: (labels: Labels) => T): { of(labels: Labels): T; all(): T[] } {
  const series = new Map<string, T>();
  return {
    of(labels) {
      const key = JSON.stringify(labels);
      const found = series.get(key) ?? create(labels);
      series.set(key, found);
      return found;
    },
    all: () => [...series.values()],
  };
}

function render({ name, help, type, samples }: Metric): string {
  const lines = samples().map(({ suffix = '', labels, value }) => `${name}${suffix}${braces(labels)} ${number(value)}`);
  return `${[`# HELP ${name} ${escapeHelp(help)}`, `# TYPE ${name} ${type}`, ...lines].join('\n')}\n`;
}

function braces(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escapeLabel(String(value))}"`);
  return pairs.length > 0 ? `{${pairs.join(',')}}` : '';
}

function number(value: number): string {
  if (Number.isFinite(value)) return String(value);
  if (Number.isNaN(value)) return 'NaN';
  return value > 0 ? '+Inf' : '-Inf';
}

function escapeHelp(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
}

function escapeLabel(text: string): string {
  return escapeHelp(text).replaceAll('"', '\\"');
}
