/** Fills the stand-in with a session as an agent leaves it: text, a table, a figure, an error, formulas, a run that goes on. For pictures and for tests of looks. */

import type { Json, StandIn, StandInExecution, StandInSession } from './stand-in.ts';

export interface Scene {
  session: StandInSession;
  running: StandInExecution;
}

export function drawScene(standIn: StandIn): Scene {
  for (const name of ['invoice-parser', 'librechat:6710', 'weather-report']) {
    const other = standIn.addSession(`s-${name}`, [name]);
    other.is_live = name !== 'weather-report';
    for (let i = 0; i < 7; i++) standIn.execute(other, { code: `step(${i})` });
  }
  const session = standIn.addSession('yuiWVAMWqRPh6AK7TK', ['rainfall-study']);
  const stream = (text: string, name = 'stdout', index = 0) => ({ type: 'stream', index, name, text });
  standIn.execute(session, {
    code: 'import pandas as pd, numpy as np\n\ndf = pd.read_csv("rainfall.csv", parse_dates=["month"])\nprint(f"{len(df):,} rows, {df.month.min():%Y} to {df.month.max():%Y}")\ndf.head()',
    outputs: [
      stream('1,048,576 rows, 1931 to 2025\n'),
      { type: 'result', index: 1, data: { 'text/html': FRAME, 'text/plain': 'df' }, metadata: {} },
    ],
    wall: 0.381,
  });
  standIn.execute(session, {
    code: 'yearly = df.groupby([df.month.dt.year, "city"]).rain.sum().unstack()\nax = yearly.rolling(10).mean().plot(figsize=(7, 3), lw=1.6)\nax.set_ylabel("mm a year, mean of ten")',
    outputs: [
      {
        type: 'display',
        index: 0,
        data: { 'image/svg+xml': figure(), 'text/plain': '<Figure size 700x300>' },
        metadata: {},
      },
    ],
    wall: 0.642,
  });
  standIn.execute(session, {
    code: 'from scipy import stats\nfor city in yearly:\n    slope = stats.linregress(yearly.index, yearly[city]).slpoe\n    print(city, slope)',
    outcome: 'error',
    wall: 0.019,
    outputs: [
      {
        type: 'error',
        index: 0,
        ename: 'AttributeError',
        evalue: "'LinregressResult' object has no attribute 'slpoe'. Did you mean: 'slope'?",
        traceback: [
          '\u001b[31m---------------------------------------------------------------------------\u001b[39m',
          '\u001b[31mAttributeError\u001b[39m                            Traceback (most recent call last)',
          '\u001b[36mCell\u001b[39m\u001b[36m \u001b[39m\u001b[32mIn[3]\u001b[39m\u001b[32m, line 3\u001b[39m\n\u001b[32m      2\u001b[39m \u001b[38;5;28;01mfor\u001b[39;00m city \u001b[38;5;129;01min\u001b[39;00m yearly:',
        ],
      },
    ],
  });
  standIn.execute(session, {
    origin: 'page',
    code: 'sort -t, -k3 -n -r rainfall.csv | head -2',
    interpreter: 'bash',
    outputs: [stream('1998-10,Bergen,541.2\n2005-11,Bergen,538.7\n')],
    wall: 0.094,
  });
  standIn.execute(session, {
    origin: 'shell',
    code: 'from IPython.display import Markdown\nMarkdown(summary)',
    outputs: [{ type: 'display', index: 0, data: { 'text/markdown': MARKDOWN }, metadata: {} }],
    wall: 0.004,
  });
  const running = standIn.execute(session, {
    code: 'model = fit(df, epochs=40)  # a few minutes',
    state: 'running',
    outcome: null,
    wall: null,
    started_at: new Date(Date.now() - 42_000).toISOString(),
  });
  standIn.print(
    session,
    running,
    '\u001b[1mfitting\u001b[0m on 839,000 rows, \u001b[32mvalidating\u001b[0m on 209,576\n',
  );
  for (const [epoch, loss] of [
    [10, 0.4122],
    [15, 0.3017],
    [18, 0.2764],
  ])
    standIn.print(
      session,
      running,
      `\repoch ${epoch}/40 \u001b[36m${'█'.repeat(Number(epoch))}${'░'.repeat(40 - Number(epoch))}\u001b[0m loss ${loss}`,
      'stderr',
    );
  standIn.answer(/\/variables$/, () => Response.json({ variables: VARIABLES }));
  standIn.answer(/\/variables\/(\w+)$/, ([, name], query) => Response.json(name === 'df' ? tableWindow(query) : TREE));
  standIn.answer(/\/workspace$/, () => Response.json(FOLDER));
  return { session, running };
}

const FRAME = `<div><style scoped>.dataframe tbody tr th{vertical-align:top}</style><table border="1" class="dataframe"><thead><tr style="text-align: right;"><th></th><th>month</th><th>city</th><th>rain</th><th>station</th></tr></thead><tbody>
<tr><th>0</th><td>1931-01-01</td><td>Oslo</td><td>49.2</td><td>SN18700</td></tr><tr><th>1</th><td>1931-01-01</td><td>Bergen</td><td>190.4</td><td>SN50540</td></tr><tr><th>2</th><td>1931-01-01</td><td>Rome</td><td>66.9</td><td>IT16242</td></tr><tr><th>3</th><td>1931-02-01</td><td>Oslo</td><td>36.0</td><td>SN18700</td></tr><tr><th>4</th><td>1931-02-01</td><td>Bergen</td><td>151.7</td><td>SN50540</td></tr></tbody></table></div>`;

const MARKDOWN = `### What the rain did
Rainfall grew in **Bergen** and *not* in Rome. The trend is the slope of

$$\\hat\\beta = \\frac{\\sum_i (t_i - \\bar t)(r_i - \\bar r)}{\\sum_i (t_i - \\bar t)^2}$$

| city | mm a decade | p |
| --- | --- | --- |
| Bergen | +31.4 | 0.002 |
| Rome | −2.1 | 0.71 |`;

const VARIABLES = [
  { name: 'df', type: 'DataFrame', shape: [1_048_576, 4], bytes: 92_000_000, preview: 'month, city, rain, station' },
  { name: 'yearly', type: 'DataFrame', shape: [95, 3], bytes: 2_400, preview: 'Bergen, Oslo, Rome' },
  { name: 'weights', type: 'ndarray', shape: [512, 64], bytes: 131_072, preview: 'float32' },
  { name: 'city', type: 'str', preview: "'Bergen'" },
  { name: 'config', type: 'dict', length: 6, preview: "{'epochs': 40, 'optimizer': {'name': 'adamw', …}}" },
  { name: 'summary', type: 'str', preview: "'### What the rain did\\nRainfall grew in …'" },
];

const TREE = {
  kind: 'tree',
  type: 'dict',
  count: 3,
  items: [
    { key: 'epochs', path: "config['epochs']", type: 'int', preview: '40', has_children: false },
    {
      key: 'optimizer',
      path: "config['optimizer']",
      type: 'dict',
      preview: "{'name': 'adamw', 'lr': 0.0003}",
      has_children: true,
    },
    {
      key: 'cities',
      path: "config['cities']",
      type: 'list',
      preview: "['Oslo', 'Bergen', 'Rome']",
      has_children: true,
    },
  ],
};

const FOLDER = {
  path: '',
  is_cut: false,
  entries: [
    { name: 'figures', kind: 'folder', size: null, modified_at: '2026-11-18T09:01:00Z' },
    { name: 'rainfall.csv', kind: 'file', size: 38_204_113, modified_at: '2026-11-18T08:51:00Z' },
    { name: 'notes.md', kind: 'file', size: 1_204, modified_at: '2026-11-18T09:02:00Z' },
  ],
};

const ROWS = 1_048_576;
const CITIES = ['Oslo', 'Bergen', 'Rome', 'Lagos'];

/** A window of a table of a million rows, computed from the numbers of its rows. */
function tableWindow(query: URLSearchParams): Json {
  const offset = Number(query.get('offset') ?? 0);
  const limit = Number(query.get('limit') ?? 100);
  const desc = query.get('desc') === '1';
  const filter = query.get('filter');
  const count = filter ? ROWS / 4 : ROWS;
  const numbers = Array.from({ length: Math.max(0, Math.min(limit, count - offset)) }, (_, i) => offset + i).map((n) =>
    desc ? count - 1 - n : n,
  );
  return {
    kind: 'table',
    columns: [
      { name: 'month', dtype: 'datetime64[ns]' },
      { name: 'city', dtype: 'object' },
      { name: 'rain', dtype: 'float64' },
      { name: 'station', dtype: 'object' },
    ],
    index: numbers.map(String),
    rows: numbers.map((n) => [
      `${1931 + (Math.floor(n / 12) % 95)}-${String((n % 12) + 1).padStart(2, '0')}-01`,
      filter || (CITIES[n % 4] ?? ''),
      n % 97 === 0 ? null : Math.round(((n * 7919) % 5400) + 100) / 10,
      `SN${10_000 + (n % 900)}`,
    ]),
    row_count: count,
    column_count: 4,
    offset,
    column_offset: 0,
  };
}

function figure(): string {
  const line = (seed: number, base: number, colour: string) => {
    const points = Array.from({ length: 95 }, (_, i) => {
      const y = base - i * 0.3 * seed - 14 * Math.sin(i / (6 + seed)) - 6 * Math.sin(i / 2.3 + seed);
      return `${46 + i * 6.7},${y.toFixed(1)}`;
    });
    return `<polyline fill="none" stroke="${colour}" stroke-width="1.8" points="${points.join(' ')}"/>`;
  };
  const grid = [60, 110, 160, 210].map(
    (y) =>
      `<path d="M46 ${y}H690" stroke="#e3e6e9"/><text x="38" y="${y + 4}" text-anchor="end">${2600 - y * 10}</text>`,
  );
  const years = [1940, 1960, 1980, 2000, 2020].map(
    (year, i) => `<text x="${108 + i * 134}" y="262" text-anchor="middle">${year}</text>`,
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" width="700" height="280" font-family="sans-serif" font-size="11" fill="#59616a"><rect width="700" height="280" fill="#fff"/>${grid.join('')}${years.join('')}${line(1, 110, '#0072b2')}${line(0.2, 180, '#d55e00')}${line(0.5, 225, '#1a7f4b')}<text x="600" y="70" fill="#0072b2">Bergen</text><text x="600" y="160" fill="#d55e00">Oslo</text><text x="600" y="228" fill="#1a7f4b">Rome</text></svg>`;
}
