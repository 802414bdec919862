/** Lists every number of a run in tables. */

import type { SweepRow } from '../causality/common-evidence.ts';
import { stateOf } from '../causality/effect-states.ts';
import type { Effect, Evidence } from '../causality/evidence.ts';
import { type Content, type Markup, markup } from './markup.ts';
import { formatCount, formatInterval, formatNumber, formatP, formatShare } from './numbers.ts';
import { formatDose } from './verdict-names.ts';

type Row = readonly [name: string, value: string];

export function numbersTables(evidence: Evidence): Markup[] {
  const {
    decodability,
    behaviour,
    steering,
    interchange,
    ablation,
    temperature,
    dormancy,
    harm,
    specificity,
    direction,
  } = evidence;
  return [
    effectsTable(evidence),
    table('Decodability, on held-out rows', [
      ['AUROC', `${formatNumber(decodability.auroc)} ${formatInterval(decodability.interval)}`],
      ...(decodability.between ?? []).map(
        ({ classes, auroc }): Row => [
          `between ${classes.map((label) => evidence.data.classes?.[label]?.name ?? String(label)).join(' and ')}`,
          formatNumber(auroc),
        ],
      ),
      ['permutation p', formatP(decodability.permutation.p)],
      [
        'random directions: mean, 95th percentile, best',
        [decodability.random.mean, decodability.random.high, decodability.random.best].map(formatNumber).join(', '),
      ],
      ['control task', formatNumber(decodability.controlTask.auroc)],
      ['selectivity', formatNumber(decodability.controlTask.selectivity)],
      ...(evidence.structureMatched
        ? [
            [
              'structure-matched set',
              `${formatNumber(evidence.structureMatched.auroc)} ${formatInterval(evidence.structureMatched.interval)}, ${formatCount(evidence.structureMatched.scores.length)} rows`,
            ] as const,
          ]
        : []),
    ]),
    table('Behaviour', [
      ['natural gap G', `${formatNumber(behaviour.gap)} ${formatInterval(behaviour.interval)}`],
      [
        evidence.target.others
          ? "prompts whose own class's words are above the mean of the others"
          : "prompts whose margin has the label's sign",
        formatShare(behaviour.expressed),
      ],
      ['gap after ablation', formatNumber(ablation.gap)],
    ]),
    table('Interventions', [
      ['dose of steering', formatDose(steering.dose)],
      ['prompts that steer the wrong way', formatShare(steering.wrongWay)],
      ['S without correction for temperature', formatNumber(steering.uncorrected)],
      ['Δrel: Δlogit(target) \u2212 Δlogit(controls)', formatNumber(steering.deltaRelative)],
      [
        'interchange of the whole activation',
        `${formatNumber(interchange.full.value)} ${formatInterval(interchange.full.interval)}`,
      ],
      ['interchange of all but the direction', formatNumber(interchange.complement)],
      ['preferred target token flips by interchange', formatShare(interchange.flips)],
      ['likeliest token flips by interchange, where it can', formatShare(interchange.answerFlips)],
      ['answers that are target words', formatShare(interchange.answers)],
      [
        'step to the class mean, and as far again beyond it',
        `${formatNumber(steering.saturation.within)}, ${formatNumber(steering.saturation.beyond)}`,
      ],
      [
        'temperature: mean, lowest, highest',
        [temperature.mean, temperature.low, temperature.high].map(formatNumber).join(', '),
      ],
      ['runs whose temperature cannot be told', formatShare(temperature.untold)],
      ['the same along random directions', formatShare(temperature.untoldAtRandom)],
      ['class swing along the direction', formatNumber(direction.swing)],
      ['mean length of the activation', formatNumber(direction.norm)],
    ]),
    sweepTable(evidence),
    table('Guards and specificity', [
      [
        'effect within natural differences, and outside',
        `${formatNumber(dormancy.within)}, ${formatNumber(dormancy.rest)}`,
      ],
      ['share of the squared direction within them', formatNumber(dormancy.geometric)],
      [
        'harm to other tokens, in nats: component, whole activation',
        `${formatNumber(harm.component)}, ${formatNumber(harm.whole)}`,
      ],
      ['random directions with the same displacement that do as much', formatShare(specificity.doseMatched.asMuch)],
      ['dose on neutral text', formatDose(specificity.neutral.dose)],
      [
        'perplexity ratio, and of random directions',
        `${formatNumber(specificity.neutral.perplexityRatio)}, ${formatNumber(specificity.neutral.random.perplexityRatio)}`,
      ],
      [
        'divergence in nats, and of random directions',
        `${formatNumber(specificity.neutral.divergence)}, ${formatNumber(specificity.neutral.random.divergence)}`,
      ],
    ]),
  ];
}

export function table(caption: string, rows: readonly Row[]): Markup {
  const body = rows.map(([name, value]) => markup`<tr><th scope="row">${name}</th><td>${value}</td></tr>`);
  return markup`<div class="scroll"><table class="pairs"><caption>${caption}</caption><tbody>${body}</tbody></table></div>`;
}

function effectsTable({ steering, interchange, ablation, multiplicity }: Evidence): Markup {
  const row = (name: string, effect: Effect): string[] => [
    name,
    formatNumber(effect.value),
    formatInterval(effect.interval),
    formatP(effect.p),
    formatP(effect.adjusted),
    stateOf(effect),
    `${formatNumber(Math.min(...effect.null))} to ${formatNumber(Math.max(...effect.null))}`,
  ];
  return columnsTable(
    'Effects, as shares of the natural gap',
    ['', 'value', '95 % interval', 'p', 'p, adjusted', 'state', `${formatCount(multiplicity.nulls)} random directions`],
    [row('S, steering', steering), row('I, interchange', interchange), row('N, ablation', ablation)],
  );
}

function sweepTable({ sweep }: Evidence): Markup {
  const row =
    (name: string) =>
    (step: SweepRow): string[] => [
      name,
      formatNumber(step.dose.norm),
      formatNumber(step.dose.swing),
      formatNumber(step.dose.absolute),
      `${formatNumber(step.flips.rate)} ${formatInterval(step.flips.interval)}`,
      formatNumber(step.towardTarget.rate),
      formatNumber(step.change),
      formatNumber(step.commonScale),
      formatNumber(step.deltaRelative),
    ];
  return columnsTable(
    'Sweep',
    ['', 'dose: lengths', 'swings', 'absolute', 'flips', 'toward target', 'change', 'R² of scale', 'Δrel'],
    [
      ...sweep.rows.map(row('direction')),
      ...sweep.asked.map(row('direction, asked for')),
      ...sweep.random.map(row('random')),
    ],
  );
}

function columnsTable(caption: string, head: readonly string[], rows: readonly (readonly string[])[]): Markup {
  const heads: Content = head.map((name) => markup`<th scope="col">${name}</th>`);
  const body = rows.map((cells) => markup`<tr>${cells.map((cell) => markup`<td>${cell}</td>`)}</tr>`);
  return markup`<div class="scroll"><table><caption>${caption}</caption><thead><tr>${heads}</tr></thead><tbody>${body}</tbody></table></div>`;
}
