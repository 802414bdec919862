import { describe, expect, it } from 'vitest';
import type { Evidence } from '../../../src/lab/causality/evidence.ts';
import {
  behaviourFigure,
  decodabilityFigure,
  effectsFigure,
  renderSvg,
  sweepFigure,
} from '../../../src/lab/report/figures.ts';
import { binned, domainOf, ticksOf } from '../../../src/lab/report/scale.ts';
import { sampleRecord } from './sample-record.ts';
import { expectWellFormed, withTexts } from './well-formed.ts';

const FIGURES = { decodabilityFigure, behaviourFigure, effectsFigure, sweepFigure };

/** The numbers of an attribute of all elements of a class. */
function values(svg: string, element: string, kind: string, attribute: string): number[] {
  const tags = svg.match(new RegExp(`<${element} class="${kind}"[^>]*>`, 'g')) ?? [];
  return tags.map((tag) => Number(new RegExp(` ${attribute}="([^"]+)"`).exec(tag)?.[1]));
}

describe('figures', () => {
  it('draw an effect beyond its null where it is, and within it where it is not', () => {
    const place = (evidence: Evidence) => {
      const svg = effectsFigure({ ...evidence, interchange: evidence.interchange }).markup;
      const panel = svg.slice(svg.indexOf('Steering S'), svg.indexOf('Interchange I'));
      const [line = 0] = values(panel, 'line', 'observed', 'x1');
      return { line, bars: values(panel, 'rect', 'null', 'x') };
    };
    const mediator = place(sampleRecord('mediator').evidence);
    expect(mediator.line).toBeGreaterThan(Math.max(...mediator.bars) + 20);
    const bystander = place(sampleRecord('bystander').evidence);
    expect(bystander.line).toBeLessThan(Math.max(...bystander.bars));
    expect(bystander.line).toBeGreaterThan(Math.min(...bystander.bars));
  });

  it('count every prompt in a histogram of its class', () => {
    const svg = decodabilityFigure(sampleRecord().evidence).markup;
    const heights = (kind: string) => values(svg, 'rect', kind, 'height').reduce((sum, height) => sum + height, 0);
    expect(heights('positive')).toBeCloseTo(heights('negative'), 0);
    const uneven = sampleRecord().evidence;
    uneven.decodability.labels = uneven.decodability.labels.map((label, index) => (index % 4 === 1 ? 0 : label));
    const changed = decodabilityFigure(uneven).markup;
    const sum = (kind: string) => values(changed, 'rect', kind, 'height').reduce((total, height) => total + height, 0);
    expect(sum('negative') / sum('positive')).toBeCloseTo(3, 1);
  });

  it.each(Object.entries(FIGURES))('%s can be drawn from any valid evidence', (_, figure) => {
    expectWellFormed(figure(sampleRecord().evidence).markup);
    expectWellFormed(figure(extreme(() => 0)).markup);
    expectWellFormed(figure(extreme((value) => value * 1e12)).markup);
    expectWellFormed(figure(extreme((value) => value * 1e-12)).markup);
    const { evidence } = sampleRecord();
    evidence.steering.null = [];
    evidence.steering.each = [];
    evidence.decodability.permutation.null = [];
    evidence.decodability.scores = [];
    evidence.sweep.rows = [];
    evidence.sweep.random = [];
    expectWellFormed(figure(evidence).markup);
  });

  it('of several runs are one file, a row for each, with their verdicts', () => {
    const svg = renderSvg([sampleRecord('mediator'), sampleRecord('bystander')]);
    expectWellFormed(svg);
    expect(svg).toMatch(/^<\?xml.*\n<svg xmlns="http:\/\/www.w3.org\/2000\/svg"/);
    expect(svg).toContain('Causal (sufficient-and-necessary)');
    expect(svg).toContain('Epiphenomenal, by the softmax (uniform-rescale)');
    expect(svg.match(/Answers that flip/g)).toHaveLength(2);
    expect(svg).not.toMatch(/<script|href=/);
  });

  it('escape texts', () => {
    expectWellFormed(renderSvg([withTexts(sampleRecord(), '</text><script>alert(1)</script>&"')]));
  });
});

describe('scales of figures', () => {
  it('have round ticks inside their domain', () => {
    expect(ticksOf({ low: -0.13, high: 1.04 }, 5)).toEqual([0, 0.5, 1]);
    expect(ticksOf({ low: -6.4, high: 6.2 }, 6)).toEqual([-5, 0, 5]);
    expect(ticksOf({ low: 0, high: 0.0031 }, 4)).toEqual([0, 0.001, 0.002, 0.003]);
  });

  it('have no empty domain', () => {
    for (const values of [[], [3], [3, 3], [0], [Number.NaN]]) {
      const { low, high } = domainOf(values);
      expect(high).toBeGreaterThan(low);
    }
  });

  it('lose no value in bins', () => {
    const counts = binned([-5, 0, 0.49, 0.5, 1, 7], { low: 0, high: 1 }, 2);
    expect(counts).toEqual([3, 3]);
  });
});

/** The sample with all numbers of its evidence changed, but those that are of the program. */
function extreme(change: (value: number) => number): Evidence {
  const { evidence } = sampleRecord();
  const text = JSON.stringify(evidence, (key, part: unknown) => {
    const isFixed = ['layer', 'position', 'labels', 'format', 'seed', 'id'].includes(key);
    if (isFixed) return part;
    if (Array.isArray(part) && key !== 'labels')
      return part.map((value) => (typeof value === 'number' ? change(value) : value));
    return typeof part === 'number' ? change(part) : part;
  });
  return { ...(JSON.parse(text) as Evidence), site: evidence.site, model: evidence.model };
}
