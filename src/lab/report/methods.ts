/** Describes how the numbers of a run were obtained, as a methods section does: tests, null distributions, corrections. */

import type { Evidence } from '../causality/evidence.ts';
import { LEAST_GAP } from '../causality/thresholds.ts';
import { choiceBetween } from '../causality/verdict-text.ts';
import { formatCount, formatNumber, formatP, formatPercent } from './numbers.ts';

export interface Method {
  name: string;
  text: string;
}

export function methodsOf(evidence: Evidence): Method[] {
  return [
    { name: 'Data', text: dataText(evidence) },
    { name: 'Direction', text: directionText(evidence) },
    { name: 'Decodability', text: decodabilityText(evidence) },
    { name: 'Behaviour', text: behaviourText(evidence) },
    { name: 'Control-token normalisation', text: normalisationText(evidence) },
    { name: 'Interventions', text: interventionsText(evidence) },
    { name: 'Null and multiplicity', text: multiplicityText(evidence) },
    { name: 'Structural rigidity', text: sweepText(evidence) },
    { name: 'Guards', text: guardsText(evidence) },
  ];
}

function dataText({ data, split }: Evidence): string {
  const made = [
    `${formatCount(data.rows)} prompts, ${classesText(data)}`,
    data.pairs > 0 && `in ${formatCount(data.pairs)} pairs`,
    data.templates > 0 && `of ${formatCount(data.templates)} templates`,
  ];
  const counts = `${formatCount(split.discovery.length)} rows in the discovery half, ${formatCount(split.test.length)} in the test half`;
  const divided = {
    none: 'Nothing was fitted to them, so all rows were tested.',
    given: `Rows that the direction had been trained on were set apart: ${counts}.`,
    pair: `Divided by pair, so that no pair is in both halves: ${counts}.`,
    template: `Divided by template, so that no wording is in both halves: ${counts}.`,
    row: `Divided by row: ${counts}.`,
  }[split.by];
  const fewer =
    split.intervened.length < split.test.length
      ? ` Interventions were made on ${formatCount(split.intervened.length)} of the test rows.`
      : '';
  return `${made.filter(Boolean).join(', ')}. ${divided} All that follows was measured on the test half.${fewer}`;
}

function classesText({ classes, positives, negatives }: Evidence['data']): string {
  if (!classes) return `${formatCount(positives)} with label 1 and ${formatCount(negatives)} with label 0`;
  return `of ${formatCount(classes.length)} classes (${classes.map(({ name, rows }) => `${name}: ${formatCount(rows)}`).join(', ')})`;
}

function subspaceText({ direction: { basis }, target }: Evidence): string {
  if (!basis) return '';
  const rank = basis.length;
  return (
    ` A subspace of ${formatCount(rank)} dimensions, tested as one: its component is swapped, ablated and moved to the class means as a whole, and random subspaces have as many dimensions. ` +
    (target.others
      ? 'AUROCs are along the lines between the class means of the discovery half in it; the scores that are shown, the doses of the sweep and what follows are along the line on which those lie furthest apart.'
      : 'Scores, the doses of the sweep and what follows are along the line between the class means of the discovery half in it.')
  );
}

function fitText({ direction: { method, search } }: Evidence): string {
  if (!search) return `Fitted on the discovery half, by ${method.replaceAll('-', ' ')}.`;
  return (
    `Fitted on the discovery half, on interchange: among ${formatCount(search.axes)} axes (the differences between the class means, and the leading principal components of differences between counterfactuals), the subspace whose component, swapped, changes the contrast of ${formatCount(search.rows)} rows most nearly as the counterfactual has it, by least squares. ` +
    `Gradients were finite differences; ${formatCount(search.steps)} steps with ${formatCount(search.runs)} runs. It recovers ${formatNumber(search.recovered)} of the behaviour there; I below is what it recovers in rows that it was not fitted on.`
  );
}

function directionText(evidence: Evidence): string {
  const { direction } = evidence;
  const made =
    direction.kind === 'fit'
      ? fitText(evidence)
      : `Given${direction.source ? ` (${direction.source})` : ''}, and not changed.`;
  return (
    `${made}${subspaceText(evidence)} In the test half, the class means lie ${formatNumber(direction.swing)} apart along it, where activations have a mean length of ${formatNumber(direction.norm)}; ` +
    `${formatPercent(direction.difference.along)} of the squared distance between the class means lies along it.`
  );
}

function decodabilityText({ decodability, data }: Evidence): string {
  const { bootstraps, permutation, random, controlTask, between } = decodability;
  const paired = data.pairs > 0;
  return (
    `${between ? `Mean AUROC over the ${formatCount(between.length)} pairs of classes (Hand and Till), each of the projections of their test rows on the line between their means` : 'AUROC of the projections of test rows'} (two that are closer than ${Number(decodability.resolution.toPrecision(2))} count in proportion to how far they are apart), with a 95 % percentile interval from ${formatCount(bootstraps)} bootstrap samples${paired ? ', pairs drawn as a whole' : ', each class by itself'}. ` +
    `Null hypothesis: labels say nothing about activations. ${formatCount(permutation.null.length)} permutations of the labels${paired ? ' within pairs' : ''}` +
    `${permutation.refitted ? ', in both halves, the direction fitted anew each time' : ', of the test half alone'}; p = (1 + number at least as high) / (1 + number of permutations). ` +
    `${formatCount(random.null.length)} random directions were scored on the same activations, each the better way round. ` +
    `The control task gives labels that mean nothing${paired ? ', the same to both rows of a pair, to be learned from one and told of the other' : ''}; ` +
    `selectivity is by how much the direction does better than a direction fitted to them (mean of ${formatCount(controlTask.tasks)} tasks).`
  );
}

function behaviourText({ target }: Evidence): string {
  const words = (tokens: readonly { text: string }[]) => tokens.map(({ text }) => JSON.stringify(text)).join(', ');
  const least = ` (of ${LEAST_GAP} logits, where |G| is less: there is no verdict then, and no share of next to nothing).`;
  const chosen =
    target.chosen === 'discovery'
      ? ', the tokens whose mean logits differ most between the classes in the discovery half'
      : '';
  if (target.others)
    return (
      `Margin m of a class = mean logit of its words \u2212 mean of the other classes', at the last position${chosen}; the words are ${choiceBetween(target)}. ` +
      `Natural gap G = mean over the prompts of the margin of their own class, all classes with equal weight. Effects are shares of G${least}`
    );
  return (
    `Margin m = mean logit of ${words(target.positive)} \u2212 mean logit of ${words(target.negative)} at the last position${chosen}. ` +
    'Natural gap G = mean of s·m over the prompts, s = +1 for label 1 and \u22121 for label 0, both classes with equal weight. Effects are shares of G' +
    least
  );
}

function normalisationText({ controls, temperature }: Evidence): string {
  const { untold, untoldAtRandom } = temperature;
  const unclear =
    untold.count + untoldAtRandom.count > 0
      ? ` In ${formatCount(untold.count)} of ${formatCount(untold.of)} runs along the direction, and in ${formatCount(untoldAtRandom.count)} of ${formatCount(untoldAtRandom.of)} along random ones, the slope cannot be told (it is beyond 0.1 to 10, or its error is more than half of it): these are left out of the effect, of what it is a share of, and of the random directions' effects.`
      : ' It could be told in every run.';
  return (
    `In each intervened run, the logits of ${formatCount(controls.tokens.length)} control tokens (${controls.chosen === 'matched' ? 'those with base logits nearest to the target' : 'given'}) ` +
    "are regressed on their logits without the intervention, by Huber's robust regression; the slope is that run's temperature, and the margin is divided by it before any test. " +
    'A vector that nothing reads still changes the length of the residual stream, and by the last norm the scale of all logits: without this step it would pass for an effect.' +
    unclear
  );
}

function interventionsText({ steering, interchange, target }: Evidence): string {
  const { pair, template, any } = interchange.partners;
  const partners = [
    pair > 0 && `${formatCount(pair)} with ${target.others ? 'another' : 'the other'} row of their pair`,
    template > 0 && `${formatCount(template)} with a row of the same template`,
    any > 0 && `${formatCount(any)} with any row of ${target.others ? 'another' : 'the other'} label`,
  ];
  const steered = target.others
    ? 'from the middle of the class means, the component is moved to the mean of each class; S = mean over classes of the margin of the class at its mean / G'
    : `from the middle between the class means, the component is moved by half of the class swing (${formatNumber(steering.dose.absolute)}) to the mean of either class; S = mean of (m(+) \u2212 m(\u2212)) / 2 / G`;
  const margins = target.others ? "contrasts between the words of both rows' classes" : "two rows' margins";
  return (
    `Steering S: ${steered}, which is 1 for a full mediator. A further step of that length beyond the mean of a prompt's own class moves ${formatNumber(steering.saturation.beyond)}, where the step to it moved ${formatNumber(steering.saturation.within)}: with less than half, the read-out saturates, and S needs no size. ` +
    `Interchange I: only the component along the direction is taken from a counterfactual row (${partners.filter(Boolean).join(', ')}); I = the share of the difference between the ${margins} (on average, of ${2 * LEAST_GAP} logits at least) that this recovers. ` +
    'The references are the interchange of the whole activation, and of all but the direction. ' +
    'Ablation N: the component along the direction is set to the middle between the class means; N = 1 \u2212 G after / G. S and I test sufficiency, N necessity. 95 % percentile intervals by bootstrap, as above, expanded for the number of pairs.'
  );
}

function multiplicityText({ multiplicity }: Evidence): string {
  const { nulls, most, question, rate, level, spent, stable } = multiplicity;
  return (
    `Each of S, I and N is compared with what is natural along ${formatCount(nulls)} isotropic random directions of length 1: their own class means, their own component of the counterfactual. ` +
    `p = (1 + number at least as large in absolute value, to 0.00001 logits) / (1 + ${formatCount(nulls)}); beyond the largest of them, an upper bound from the exponential tail of their largest tenth, unless that tenth shows a heavier one. ` +
    `Random directions were added until more would change no effect's state with 99 % confidence, ${formatCount(most)} at most (${stable ? 'reached before' : 'not reached'}). ` +
    `This is question ${formatCount(question)} of the lab session; the lab counts them, not its user. Of the error rate of ${rate} for all of them together it may spend ${formatP(level)}, and ${formatP(spent)} is spent with it. The effects are tested in a fixed sequence, I, S, N, each only if those before it are significant; adjusted p-values are scaled so that ${rate} is the bound. ` +
    'An effect is present if it is beyond random directions and its interval beyond 0.05; absent if all of its interval is within 0.10, where 0.25 is more than 95 % of random directions do; else unknown.'
  );
}

function sweepText({ sweep, split }: Evidence): string {
  return (
    `The direction is added at ${formatCount(sweep.rows.length)} doses to all ${formatCount(split.intervened.length)} prompts, and so are ${formatCount(sweep.randomDirections)} random directions. ` +
    'A flip is another likeliest token of the whole vocabulary; shares have 95 % Wilson intervals. The change is ‖Δlogit‖ / ‖logit‖ over the vocabulary, logits taken from their mean; the common scale is the share of ‖Δlogit‖² that one factor on all logits of a run explains.'
  );
}

function guardsText({ dormancy, specificity, harm }: Evidence): string {
  const { neutral, doseMatched } = specificity;
  return (
    `Dormant pathways: the swap of the component is divided into what lies in the span of ${formatCount(dormancy.differences)} natural differences between counterfactuals (by ridge regression, 1 % of a coordinate's mean square) and the rest, and both are run. ` +
    `Harm: the divergence of the distribution over all tokens but the target's at the last position, by swapping the component (${formatNumber(harm.component)} nats) and by swapping the whole activation (${formatNumber(harm.whole)}). ` +
    `Specificity, which decides nothing: ${formatCount(doseMatched.null.length)} random directions with the tested one's own displacement, of which ${formatCount(doseMatched.asMuch.count)} move the behaviour as much; ` +
    `and ${formatCount(neutral.prompts)} neutral prompts with ${formatCount(neutral.tokens)} tokens, half of the class swing added at the same kind of position, the larger of both signs.`
  );
}
