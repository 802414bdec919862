/** Shows the model that is attached, with the probes and experiments that the lab keeps of it; attaches another. */

import { useState } from 'preact/hooks';
import * as z from 'zod/mini';
import { useApp } from '../shell/context.ts';
import { formatAgo, formatCount } from '../shell/format.ts';
import { Scrolling } from '../shell/scrolling.tsx';
import { useFetched } from '../shell/use-fetched.ts';
import { linkTo } from '../state/route.ts';
import { labState } from './lab-state.ts';
import { findingsOf } from './tool-call.ts';

const statusSchema = z.object({
  model_id: z.string(),
  architecture: z.string(),
  engine: z.string(),
  device: z.string(),
  dtype: z.string(),
  layers: z.number(),
  d_model: z.number(),
  vocabulary: z.number(),
  parameters: z.number(),
  probes_loaded: z.number(),
  captures_in_memory: z.number(),
  family: z.number(),
  error_spent: z.optional(z.number()),
  weights_sha256: z.string(),
});
const probesSchema = z.object({
  probes: z.array(
    z.object({
      id: z.string(),
      layer: z.union([z.string(), z.number()]),
      position: z.union([z.string(), z.number()]),
      rank: z.optional(z.number()),
    }),
  ),
});
const manifestsSchema = z.object({
  manifests: z.array(z.object({ tool: z.string(), manifest_sha256: z.string(), time: z.string() })),
});

export function Holdings() {
  const { api } = useApp();
  const session_name = labState.sessionName.value;
  const changed = labState.changed.value;
  const { value, problem } = useFetched(
    async (signal) => {
      const options = { signal };
      const status = statusSchema.parse(await findingsOf(api, 'colab_status', { session_name }, options));
      const [probes, manifests] = await Promise.all([
        findingsOf(api, 'list_probes', { session_name }, options),
        findingsOf(api, 'list_manifests', { session_name, limit: 30 }, options),
      ]);
      return { status, ...probesSchema.parse(probes), ...manifestsSchema.parse(manifests) };
    },
    [api, session_name, changed],
  );
  if (problem || !value) return <Attach why={problem} />;
  const { status, probes, manifests } = value;
  return (
    <>
      <section class="card" aria-labelledby="lab-model">
        <h2 id="lab-model">{status.model_id}</h2>
        <dl class="facts">
          <Fact
            name="Architecture"
            value={`${status.architecture}, ${status.layers} layers of width ${formatCount(status.d_model)}`}
          />
          <Fact name="Parameters" value={formatCount(status.parameters)} />
          <Fact name="Engine" value={`${status.engine}, ${status.device}, ${status.dtype}`} />
          <Fact name="Captures" value={formatCount(status.captures_in_memory)} />
          <Fact
            name="Questions asked"
            value={`${status.family}${status.error_spent === undefined ? '' : `, ${status.error_spent.toPrecision(2)} of the error rate 0.05 spent`}`}
          />
          <Fact name="Weights" value={status.weights_sha256.slice(0, 16)} />
        </dl>
        <p>
          <a href={linkTo({ view: 'lab', page: 'run:causality_protocol' })}>Ask whether it uses a direction</a>
        </p>
      </section>
      <section class="card" aria-labelledby="lab-probes">
        <h2 id="lab-probes">Probes</h2>
        {probes.length === 0 && <p class="quiet">None yet: run train_probe on labelled prompts.</p>}
        {probes.length > 0 && (
          <Rows
            label="Probes"
            head={['probe', 'layer', 'position', 'rank']}
            rows={probes.map(({ id, layer, position, rank = 1 }) => [
              id,
              String(layer),
              String(position),
              String(rank),
            ])}
          />
        )}
      </section>
      <section class="card" aria-labelledby="lab-manifests">
        <h2 id="lab-manifests">Experiments</h2>
        {manifests.length === 0 && <p class="quiet">None yet. Every run leaves a manifest here.</p>}
        {manifests.length > 0 && (
          <Rows
            label="Experiments"
            head={['tool', 'manifest', 'when']}
            rows={manifests.map(({ tool, manifest_sha256, time }) => [
              tool,
              manifest_sha256.slice(0, 16),
              formatAgo(time, Date.now()),
            ])}
          />
        )}
      </section>
    </>
  );
}

function Fact({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

function Rows({ label, head, rows }: { label: string; head: string[]; rows: string[][] }) {
  return (
    <Scrolling class="frame-table" label={label}>
      <table>
        <thead>
          <tr>
            {head.map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((cells, at) => (
            <tr key={at}>
              {cells.map((text, column) => (
                <td key={column}>{text}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Scrolling>
  );
}

function Attach({ why }: { why: string | undefined }) {
  const { api, fail } = useApp();
  const [isBusy, setBusy] = useState(false);
  async function attach(endpoint: string, token: string): Promise<void> {
    setBusy(true);
    try {
      const args = { endpoint, session_name: labState.sessionName.value, ...(token && { token }) };
      await findingsOf(api, 'colab_attach', args, { signal: new AbortController().signal });
      labState.changed.value += 1;
    } catch (error) {
      fail(error);
    } finally {
      setBusy(false);
    }
  }
  return (
    <section class="card" aria-labelledby="lab-attach">
      <h2 id="lab-attach">Attach a model</h2>
      <p class="quiet">{why ?? 'Looking…'}</p>
      <form
        class="schema-form"
        onSubmit={(event) => {
          event.preventDefault();
          const data = new FormData(event.currentTarget);
          void attach(String(data.get('endpoint')), String(data.get('token')));
        }}
      >
        <div class="field">
          <label htmlFor="lab-endpoint">Endpoint</label>
          <input id="lab-endpoint" name="endpoint" type="text" value="demo" aria-describedby="lab-endpoint-hint" />
          <p class="quiet" id="lab-endpoint-hint">
            <code>demo</code> ships with Cuvette; or a model folder, a Hugging Face id, or the URL of a{' '}
            <code>cuvette lab serve</code>.
          </p>
        </div>
        <div class="field">
          <label htmlFor="lab-token">Token, of a lab at a URL</label>
          <input id="lab-token" name="token" type="password" autocomplete="off" />
        </div>
        <button type="submit" class="primary" disabled={isBusy}>
          {isBusy ? 'Attaching…' : 'Attach'}
        </button>
      </form>
    </section>
  );
}
