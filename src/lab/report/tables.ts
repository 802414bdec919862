/** Every number of a run, in tables. */

import type { Effect, Evidence, SweepRow } from '../causality/evidence.ts';
import { type Content, type Markup, markup } from './markup.ts';
import { number, probability, range, shareOf, whole } from './numbers.ts';
import { doseOf } from './words.ts';

type Row = readonly [name: string, value: string];

export function numbersTables(evidence: Evidence): Markup[] {
  const { decodability, behaviour, steering, interchange, ablation, temperature, guards, direction } = evidence;
  return [
    effectsTable(evidence),
    table('Decodability, on held-out rows', [
      ['AUROC', `${number(decodability.auroc)} ${range(decodability.interval)}`],
      ['permutation p', probability(decodability.permutation.p)],
      [
        'random directions: mean, 95th percentile, best',
        [decodability.random.mean, decodability.random.high, decodability.random.best].map(number).join(', '),
      ],
      ['control task', number(decodability.controlTask.auroc)],
      ['selectivity', number(decodability.controlTask.selectivity)],
      ...(evidence.structureMatched
        ? [
            [
              'structure-matched set',
              `${number(evidence.structureMatched.auroc)} ${range(evidence.structureMatched.interval)}, ${whole(evidence.structureMatched.scores.length)} rows`,
            ] as const,
          ]
        : []),
    ]),
    table('Behaviour', [
      ['natural gap G', `${number(behaviour.gap)} ${range(behaviour.interval)}`],
      ["prompts whose margin has the label's sign", shareOf(behaviour.expressed)],
      ['gap after ablation', number(ablation.gap)],
    ]),
    table('Interventions', [
      ['dose of steering', doseOf(steering.dose)],
      ['prompts that steer the wrong way', shareOf(steering.wrongWay)],
      ['S without correction for temperature', number(steering.uncorrected)],
      ['Δrel: Δlogit(target) \u2212 Δlogit(controls)', number(steering.deltaRelative)],
      ['interchange of the whole activation', number(interchange.full)],
      ['interchange of all but the direction', number(interchange.complement)],
      ['preferred target token flips by interchange', shareOf(interchange.flips)],
      ['likeliest token flips by interchange', shareOf(interchange.answerFlips)],
      [
        'temperature: mean, lowest, highest',
        `${[temperature.mean, temperature.low, temperature.high].map(number).join(', ')}${temperature.clamped > 0 ? `; ${whole(temperature.clamped)} clamped` : ''}`,
      ],
      ['class swing along the direction', number(direction.swing)],
      ['mean length of the activation', number(direction.norm)],
    ]),
    sweepTable(evidence),
    table('Guards', [
      [
        'on-manifold fraction',
        `${number(guards.onManifold.value)} (${number(guards.onManifold.share)} of ${number(guards.onManifold.reach)})`,
      ],
      ['dose on neutral text', doseOf(guards.neutral.dose)],
      [
        'perplexity ratio, and of random directions',
        `${number(guards.neutral.perplexityRatio)}, ${number(guards.neutral.random.perplexityRatio)}`,
      ],
      [
        'divergence in nats, and of random directions',
        `${number(guards.neutral.divergence)}, ${number(guards.neutral.random.divergence)}`,
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
    number(effect.value),
    range(effect.interval),
    probability(effect.p),
    probability(effect.adjusted),
    `${number(Math.min(...effect.null))} to ${number(Math.max(...effect.null))}`,
  ];
  return columnsTable(
    'Effects, as shares of the natural gap',
    [
      '',
      'value',
      '95 % interval',
      'p',
      `p, Holm over ${whole(multiplicity.tests)}`,
      `${whole(multiplicity.nulls)} random directions`,
    ],
    [row('S, steering', steering), row('I, interchange', interchange), row('N, ablation', ablation)],
  );
}

function sweepTable({ sweep }: Evidence): Markup {
  const row =
    (name: string) =>
    (step: SweepRow): string[] => [
      name,
      number(step.dose.norm),
      number(step.dose.swing),
      number(step.dose.absolute),
      `${number(step.flips.rate)} ${range(step.flips.interval)}`,
      number(step.towardTarget.rate),
      number(step.change),
      number(step.commonScale),
      number(step.deltaRelative),
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
