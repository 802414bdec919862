/** Draws how the service is used and how it stands, for who runs it: calls by whom, how long they take, what was refused, what code may do, what is missing. */

import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { useApp } from '../shell/context.ts';
import { formatBytes, formatCount, formatSeconds } from '../shell/format.ts';
import { IconButton } from '../shell/icons.tsx';
import { panes } from '../shell/panes.ts';
import { Scrolling } from '../shell/scrolling.tsx';
import { useFetched } from '../shell/use-fetched.ts';
import '../styles/lab.css';
import { Bars } from './bars.tsx';
import { type Operation, operationSchema, quantile, totals } from './operation.ts';

const EVERY = 5_000;

export function OperateView() {
  const { api } = useApp();
  const [round, setRound] = useState(0);
  const { value, problem } = useFetched((signal) => api.get(operationSchema, api.url('operate'), signal), [api, round]);
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) setRound((count) => count + 1);
    }, EVERY);
    return () => clearInterval(timer);
  }, []);
  return (
    <main class="page" aria-label="Operate">
      <header class="bar">
        <IconButton
          icon="menu"
          label="Sessions"
          class="only-narrow"
          onClick={() => {
            panes.sidebar.value = true;
          }}
        />
        <h1>Operate</h1>
        {value && (
          <span class="quiet">
            Cuvette {value.version}, up {formatSeconds(value.uptime_seconds)}
          </span>
        )}
      </header>
      <div class="lab-body">
        {problem && !value && <p class="quiet bad">{problem}</p>}
        {value && <Standing operation={value} />}
      </div>
    </main>
  );
}

function Standing({ operation: { metrics, sandbox, doctor, settings } }: { operation: Operation }) {
  const calls = totals(metrics.executions, () => 'all').get('all') ?? 0;
  const refused = totals(metrics.refusals, () => 'all').get('all') ?? 0;
  const hit = totals(metrics.limits, () => 'all').get('all') ?? 0;
  return (
    <>
      <div class="tiles">
        <Tile
          value={`${formatCount(metrics.sessions.live)} / ${formatCount(metrics.sessions.most)}`}
          name="sessions live, at most"
        />
        <Tile value={formatCount(calls)} name="executions" />
        <Tile value={formatCount(hit)} name="limits hit" />
        <Tile value={formatCount(refused)} name="refusals" />
        <Tile value={formatBytes(metrics.memory.resident)} name="memory of the service" />
        <Tile value={formatCount(metrics.sessions.evicted)} name="sessions evicted" />
      </div>
      <div class="halves">
        <Card title="Who runs code">
          <Bars counts={totals(metrics.executions, ({ principal }) => principal)} empty="Nobody yet." />
        </Card>
        <Card title="By which way, and how it ended">
          <Bars
            counts={totals(metrics.executions, ({ surface, outcome }) => `${surface}, ${outcome}`)}
            isBad={(name) => !name.endsWith(', ok')}
            empty="Nothing ran yet."
          />
        </Card>
        <Card title="How long executions take">
          {metrics.latencies.length === 0 && <p class="quiet">Nothing ran yet.</p>}
          {metrics.latencies.length > 0 && (
            <Scrolling class="frame-table" label="How long executions take">
              <table>
                <thead>
                  <tr>
                    {['way in', 'half within', '95 % within', 'mean', 'executions'].map((name, at) => (
                      <th key={name} scope="col" class={at > 0 ? 'number' : ''}>
                        {name}
                      </th>
                    ))}
                  </tr>
                </thead>
                <tbody>
                  {metrics.latencies.map((one) => (
                    <tr key={one.surface}>
                      <th scope="row">{one.surface}</th>
                      <td class="number">{quantile(one, 0.5)}</td>
                      <td class="number">{quantile(one, 0.95)}</td>
                      <td class="number">{one.total > 0 ? formatSeconds(one.seconds / one.total) : '–'}</td>
                      <td class="number">{formatCount(one.total)}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </Scrolling>
          )}
        </Card>
        <Card title="Refused, and limits that were hit">
          <Bars
            counts={
              new Map([
                ...totals(metrics.refusals, ({ principal, code }) => `${principal}: ${code}`),
                ...totals(metrics.limits, ({ principal, limit }) => `${principal}: ${limit}`),
              ])
            }
            isBad={() => true}
            empty="Nothing was refused."
          />
        </Card>
        <Card title="What code may do">
          <p>{sandbox.description}</p>
          <dl class="facts">
            <div>
              <dt>network</dt>
              <dd>{sandbox.network}</dd>
            </div>
            {Object.entries(sandbox.limits).map(([name, limit]) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd>{limit === 0 ? 'no limit' : formatCount(limit)}</dd>
              </div>
            ))}
          </dl>
        </Card>
        <Card title="What the doctor finds">
          <ul class="findings">
            {doctor.map(({ name, state, detail, advice }) => (
              <li key={name} class={state}>
                <span class="mark" aria-hidden="true">
                  {state === 'works' ? '✓' : '!'}
                </span>
                <span>
                  <strong>{name}</strong> <span class="unseen">{state}: </span>
                  {detail}
                </span>
                {advice && <p class="quiet">{advice}</p>}
              </li>
            ))}
          </ul>
        </Card>
      </div>
      <Card title="Settings">
        <Scrolling class="frame-table" label="Settings">
          <table>
            <thead>
              <tr>
                <th scope="col">setting</th>
                <th scope="col">value</th>
                <th scope="col">from</th>
                <th scope="col">flag</th>
              </tr>
            </thead>
            <tbody>
              {settings.map(({ setting, value, source, flag }) => (
                <tr key={setting}>
                  <th scope="row">{setting}</th>
                  <td>{value === null ? '–' : Array.isArray(value) ? value.join(', ') : String(value)}</td>
                  <td>{source}</td>
                  <td>
                    <code>{flag}</code>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scrolling>
      </Card>
    </>
  );
}

function Tile({ value, name }: { value: string; name: string }) {
  return (
    <div class="tile">
      <strong>{value}</strong>
      <span>{name}</span>
    </div>
  );
}

function Card({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section class="card">
      <h2>{title}</h2>
      {children}
    </section>
  );
}
