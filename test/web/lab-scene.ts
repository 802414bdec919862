/** Answers for the lab and for operations, for pictures and for tests of looks: the evidence is a real record's. */

import type { ProtocolRecord } from '../../src/lab/causality/verdict.ts';
import type { Json, StandIn } from './stand-in.ts';

const STATUS = {
  ok: true,
  model_id: 'cuvette/demo',
  architecture: 'llama',
  engine: 'embedded',
  device: 'cpu',
  dtype: 'float32',
  layers: 6,
  d_model: 128,
  vocabulary: 2_048,
  parameters: 1_734_912,
  probes_loaded: 2,
  captures_in_memory: 3,
  family: 2,
  error_spent: 0.031,
  weights_sha256: '5f1c0a9b7e3d4c21aa0f9d8e',
};

const TOOLS = [
  ['colab_attach', 'Attach lab', { endpoint: { type: 'string', description: 'A model.' } }, ['endpoint']],
  [
    'causality_protocol',
    'Causality protocol',
    {
      capture_id: { type: 'string', description: 'From capture_acts.' },
      probe_id: { type: 'string', description: 'The direction; or fit.' },
      layer: { type: 'integer' },
      fit: { type: 'string', enum: ['mean', 'interchange'], description: 'Finds the direction in half of the data.' },
      positive_tokens: {
        type: 'array',
        items: { type: 'string' },
        description: 'Next tokens that label 1 makes likelier.',
      },
      require_name: { type: 'boolean', default: false, description: 'Without one, not causal.' },
      alpha_sweep: { type: 'array', items: { type: 'number' }, description: 'Doses.' },
    },
    ['capture_id'],
  ],
  ['train_probe', 'Train probe', { capture_id: { type: 'string' } }, ['capture_id']],
  ['sweep', 'Sweep', { capture_id: { type: 'string' } }, ['capture_id']],
].map(([name, title, properties, required]) => ({
  name,
  title,
  description:
    name === 'causality_protocol'
      ? 'Does the model use this direction? Decodability, steering, interchange and ablation against random directions, with corrections and guards.'
      : `${title} on the model that is attached.`,
  annotations: {},
  is_lab: true,
  input_schema: { type: 'object', properties, required },
  output_schema: {},
}));

export function answerLab(standIn: StandIn, record: ProtocolRecord): void {
  const answers: Record<string, Json> = {
    colab_status: STATUS,
    list_probes: {
      probes: [
        { id: 'plural-subject', layer: 3, position: -1 },
        { id: 'praise', layer: 4, position: -1, rank: 2 },
      ],
    },
    list_manifests: {
      manifests: [
        { tool: 'causality_protocol', manifest_sha256: '91be77aa0c64d1f2e1', time: '2026-11-18T08:40:00Z' },
        { tool: 'train_probe', manifest_sha256: '0d4e0b1c3c7af1aa02', time: '2026-11-18T08:31:00Z' },
      ],
    },
    causality_protocol: { verdict: record.verdict.verdict, reason: record.verdict.reason, record },
  };
  standIn.answer(/^\/tools$/, () => Response.json({ tools: TOOLS }));
  standIn.answer(/^\/tools\/(\w+)$/, async ([, name = ''], _, request) => {
    const { arguments: given } = (await request.json()) as { arguments: Json };
    const line = (event: Json) => `data: ${JSON.stringify(event)}\n\n`;
    const measuring = line({ type: 'progress', message: 'measuring what each intervention moves' });
    const headers = { 'content-type': 'text/event-stream' };
    if (given.capture_id === 'forever') {
      const body = new ReadableStream({
        start: (controller) => controller.enqueue(new TextEncoder().encode(measuring)),
      });
      return new Response(body, { headers });
    }
    const done = { type: 'done', text: '', structured: answers[name] ?? {}, images: [], is_error: false };
    return new Response(`${measuring}${line(done)}`, { headers });
  });
}

const bounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const latency = (surface: string, all: number, from: number) => ({
  surface,
  total: all,
  seconds: all * (bounds[from] ?? 1),
  buckets: [
    ...bounds.map((le, at) => ({ le, total: Math.round(all * Math.min(1, Math.max(0, (at - from + 2) / 6))) })),
    { le: null, total: all },
  ],
});

export const OPERATION = {
  version: '0.1.0',
  uptime_seconds: 187_320,
  metrics: {
    sessions: { live: 14, evicted: 3, most: 64 },
    executions: [
      { principal: 'anna', surface: 'agent', outcome: 'ok', total: 1_204 },
      { principal: 'anna', surface: 'agent', outcome: 'error', total: 87 },
      { principal: 'ben', surface: 'rest', outcome: 'ok', total: 640 },
      { principal: 'ben', surface: 'rest', outcome: 'timeout', total: 6 },
      { principal: 'carla', surface: 'page', outcome: 'ok', total: 58 },
      { principal: 'anna', surface: 'shell', outcome: 'ok', total: 212 },
    ],
    latencies: [latency('agent', 1_291, 1), latency('rest', 646, 3), latency('page', 58, 2)],
    limits: [
      { principal: 'ben', limit: 'memory', total: 4 },
      { principal: 'anna', limit: 'disk-quota', total: 1 },
    ],
    refusals: [
      { principal: 'ben', code: 'rate_limited', total: 22 },
      { principal: 'nobody', code: 'unauthorized', total: 9 },
    ],
    requests: [],
    memory: { resident: 121_400_000, heap: 61_000_000 },
    bytes: { uploaded: 48_000_000, downloaded: 9_000_000 },
  },
  sandbox: {
    description: 'Code is confined by namespaces, a cgroup and seccomp, in a root of its own.',
    network: 'none',
    limits: { memory_mb: 2_048, processes: 256, disk_mb: 4_096, cpu_seconds: 0 },
  },
  doctor: [
    { name: 'sandbox', state: 'works', detail: 'bubblewrap 0.11, user namespaces, cgroup v2', advice: null },
    { name: 'python', state: 'works', detail: 'Python 3.12.4, environment ready', advice: null },
    { name: 'go', state: 'missing', detail: 'there is no go on PATH', advice: 'Install Go 1.22 or later to run Go.' },
  ],
  settings: [
    { setting: 'maxSessions', value: 64, source: 'flag', flag: '--max-sessions', variables: [] },
    { setting: 'timeout', value: 120, source: 'default', flag: '--timeout', variables: [] },
    { setting: 'network', value: 'none', source: 'environment', flag: '--network', variables: [] },
  ],
};
