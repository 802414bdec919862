/** Draws the sections of a protocol run that a reader judges it by: verdict, examples, figures, guards, decision, limits, methods, numbers. A report page and the workbench show the same ones. */

import { nameOfClass } from '../causality/classes.ts';
import { rowAt } from '../causality/dataset.ts';
import { stateOf } from '../causality/effect-states.ts';
import type { Evidence } from '../causality/evidence.ts';
import type { ProtocolRecord, Verdict } from '../causality/verdict.ts';
import { behaviourFigure, decodabilityFigure, effectsFigure, sweepFigure } from './figures.ts';
import { guardsOf } from './guards.ts';
import { type Content, type Markup, markup, trusted } from './markup.ts';
import { methodsOf } from './methods.ts';
import { formatCount, formatNumber, formatP, formatPercent } from './numbers.ts';
import { numbersTables } from './tables.ts';
import { MEANINGS, titleOf, toneOf, VERDICT_NAMES } from './verdict-names.ts';

export function reportSections(record: ProtocolRecord): Markup {
  const { evidence, verdict } = record;
  return markup`<h1>${titleOf(record)}</h1>
<p class="lead">Causality protocol on ${evidence.model.id} (${evidence.model.architecture}, ${formatCount(evidence.model.layers)} layers of width ${formatCount(evidence.model.width)}), ${formatCount(evidence.split.test.length)} held-out prompts</p>
${verdictSection(verdict)}
${examplesSection(record)}
${figuresSection(evidence)}
${guardsSection(evidence)}
${decisionSection(verdict)}
${listSection('Scope and limits', verdict.limits)}
${methodsSection(evidence)}
<h2>All numbers</h2>
${numbersTables(evidence)}`;
}

function verdictSection(verdict: Verdict): Markup {
  return markup`<div class="verdict ${toneOf(verdict.verdict)}"><strong>${VERDICT_NAMES[verdict.verdict]}</strong>
<code>${verdict.verdict} : ${verdict.reason}</code>
<p>${verdict.sentence}</p><p>${MEANINGS[verdict.verdict]}</p></div>`;
}

/** A card for each prompt, which reads on a narrow screen as well as on a wide one. */
function examplesSection({ question, evidence }: ProtocolRecord): Content {
  const cards = evidence.examples.map(({ row, before, component, whole }) => {
    const { prompt, label } = rowAt(question.dataset, row);
    const said = ({ text, probability }: typeof before) =>
      markup`<b>${JSON.stringify(text)}</b> <small>${formatPercent(probability)}</small>`;
    return markup`<li><p><small>${question.classes ? nameOfClass(question.classes, label) : `label ${label}`}</small> ${prompt}</p>
<dl><dt>says</dt><dd>${said(before)}</dd><dt>component swapped</dt><dd>${said(component)}</dd><dt>everything swapped</dt><dd>${said(whole)}</dd></dl></li>`;
  });
  return (
    cards.length > 0 &&
    markup`<h2>Examples</h2>
<p>The first test prompts of each class: the likeliest next token, with its probability, of the model as it is; with the direction's component taken from the counterfactual; and with the whole activation of this site taken from it.</p>
<ul class="examples">${cards}</ul>`
  );
}

function figuresSection(evidence: Evidence): Markup {
  const { decodability, behaviour, steering, interchange, ablation, multiplicity, sweep } = evidence;
  return markup`<h2>Evidence</h2>
${figure(decodabilityFigure(evidence), 'Figure 1. Can it be read?', [
  `First: projections of ${formatCount(decodability.scores.length)} held-out prompts on the direction, by class, with their means. `,
  `Second: AUROC${decodability.between ? ', the mean over pairs of classes,' : ''} (line; band: 95 % interval) against ${formatCount(decodability.permutation.null.length)} permutations of the labels (filled) and ${formatCount(decodability.random.null.length)} random directions (outlined).`,
])}
${figure(behaviourFigure(evidence), 'Figure 2. Does the model act on it?', [
  `First: the model's own margins between the target tokens; ${formatPercent(behaviour.expressed.rate)} of prompts answer as their label says. `,
  'Second: what each intervention moves, as a share of the natural gap, with 95 % intervals (dotted: none, half and all of it). Hollow: the two references of the interchange.',
])}
${figure(effectsFigure(evidence), 'Figure 3. Against chance.', [
  `Each effect (line; band: 95 % interval) against what is natural along ${formatCount(multiplicity.nulls)} random directions (grey): their own class means, their own component of the counterfactual. A tick for each prompt. `,
  `Adjusted p: S ${formatP(steering.adjusted)} (${stateOf(steering)}), I ${formatP(interchange.adjusted)} (${stateOf(interchange)}), N ${formatP(ablation.adjusted)} (${stateOf(ablation)}).`,
])}
${figure(sweepFigure(evidence), 'Figure 4. Structural rigidity.', [
  `The direction (blue) and the mean of ${formatCount(sweep.randomDirections)} random directions (grey) at growing doses. First: share of prompts whose likeliest token changes, with 95 % Wilson intervals; hollow: toward the target. A dose pushes all prompts the same way, so that one which works flips those of the other class: half of them. `,
  'Second: relative change of the logits; below the line at 2 % a direction counts as inert. Third: the share of that change that one common factor explains; where it is more than half over all doses together, the direction rescales and does not choose ',
  `(here ${formatNumber(sweep.commonScale)}).`,
])}`;
}

function figure(picture: Markup, title: string, caption: Content): Markup {
  return markup`<figure>${picture}<figcaption><b>${title}</b> ${caption}</figcaption></figure>`;
}

function guardsSection(evidence: Evidence): Markup {
  const rows = guardsOf(evidence).map(
    ({ name, value, limit, passes }) =>
      markup`<tr><td>${name}</td><td>${value}</td><td>${limit}</td><td class="${passes ? 'good-text' : 'bad-text'}">${passes ? 'passes' : 'fails'}</td></tr>`,
  );
  return markup`<h2>Guards</h2>
<table class="guards"><thead><tr><th scope="col">guard</th><th scope="col">found</th><th scope="col">limit</th><th scope="col"></th></tr></thead><tbody>${rows}</tbody></table>`;
}

function decisionSection({ path }: Verdict): Markup {
  const rows = path.map(
    ({ condition, matched, because }) =>
      markup`<li${matched && trusted(' class="matched"')}>${condition}<span>${because}</span></li>`,
  );
  return markup`<h2>Decision</h2>
<p>The verdict is a function of the evidence alone: the first row of this table whose condition holds.</p>
<ol class="path">${rows}</ol>`;
}

function listSection(title: string, sentences: readonly string[]): Content {
  return sentences.length > 0 && markup`<h2>${title}</h2><ul>${sentences.map((text) => markup`<li>${text}</li>`)}</ul>`;
}

function methodsSection(evidence: Evidence): Markup {
  return markup`<h2>Methods</h2>${methodsOf(evidence).map(({ name, text }) => markup`<p><b>${name}.</b> ${text}</p>`)}`;
}
