/** Defines the evidence of a run of the causality protocol, as plain JSON. The verdict is a function of it alone, so that anyone can decide again. */

import * as z from 'zod';
import { commonEvidence, dose, intervalSchema, partnerCounts, share, token } from './common-evidence.ts';

/** One effect as a share of the natural one, against what is natural along random directions. */
const effect = z.object({
  value: z.number(),
  /** What a share of 1 is, in logits. */
  whole: z.number(),
  /** 95 %, by bootstrap over pairs. */
  interval: intervalSchema,
  /** What each prompt adds, in logits, in the order of `split.intervened`; null where the temperature of the run cannot be told. */
  each: z.array(z.number().nullable()),
  null: z.array(z.number()),
  /** How often a random direction does as much. */
  p: z.number(),
  /** In the sequence of interchange, steering, ablation the largest p so far, and so scaled that 0.05 is the level of this question. */
  adjusted: z.number(),
});

/** What an intervention does to the answer of one prompt. */
const said = token.extend({ probability: z.number() });

export const evidenceSchema = commonEvidence.extend({
  format: z.literal(3),
  steering: effect.extend({
    dose,
    /** Prompts where going to the mean of class 1 lowers what going to that of class 0 does not. */
    wrongWay: share,
    /** Without correction for temperature. */
    uncorrected: z.number(),
    /** Mean Δlogit(target) − mean Δlogit(controls) between both signs, halved. */
    deltaRelative: z.number(),
    /** What the step from the middle to the class mean moves, and what another such step moves, as shares of the natural gap. */
    saturation: z.object({ within: z.number(), beyond: z.number() }),
  }),
  interchange: effect.extend({
    /** The whole activation is swapped: whether anything passes through this site. */
    full: z.object({ value: z.number(), interval: intervalSchema }),
    /** All but the direction's component is swapped. */
    complement: z.number(),
    /** The model comes to prefer the partner's target tokens to its own. */
    flips: share,
    /** Of the prompts whose answer and whose partner's answer are target tokens of their classes: the likeliest token becomes one of the partner's. */
    answerFlips: share,
    /** Prompts whose likeliest token is a target token. */
    answers: share,
    partners: partnerCounts,
  }),
  ablation: effect.extend({ gap: z.number() }),
  /** Factors that the interventions above put on all logits, and the runs in which they cannot be told. */
  temperature: z.object({
    mean: z.number(),
    low: z.number(),
    high: z.number(),
    untold: share,
    /** The same for random directions. */
    untoldAtRandom: share,
  }),
  multiplicity: z.object({
    /** Which question of the lab session this is. */
    question: z.number().int(),
    /** The error rate of all questions together; what this one may spend of it, and what all up to it have. */
    rate: z.number(),
    level: z.number(),
    spent: z.number(),
    /** Random directions: how many there are, and how many there may be at most. */
    nulls: z.number().int(),
    most: z.number().int(),
    /** Whether more of them would change no state of an effect, with 99 % confidence. */
    stable: z.boolean(),
  }),
  /** The swap of the component, divided into what lies in the span of natural differences between counterfactuals and the rest, as shares of the natural effect. */
  dormancy: z.object({
    within: z.number(),
    rest: z.number(),
    /** Share of the squared direction in that span. */
    geometric: z.number(),
    /** Natural differences that the span was made of. */
    differences: z.number().int(),
  }),
  /** Nats that the distribution over all but the target tokens moves by, at the claim's own place: by swapping the component, and the whole activation. */
  harm: z.object({ component: z.number(), whole: z.number() }),
  specificity: z.object({
    /** Random directions with the tested one's displacement: how many do as much as it, by interchange. */
    doseMatched: z.object({ null: z.array(z.number()), asMuch: share }),
    /** As many other words, drawn from the control tokens: how many draws differ as much between the classes as the target words do. */
    otherWords: share.optional(),
    neutral: z.object({
      prompts: z.number().int(),
      tokens: z.number().int(),
      dose,
      /** The larger of both signs of the dose. */
      perplexityRatio: z.number(),
      /** Nats, the larger of both signs. */
      divergence: z.number(),
      /** The same for random directions of the same length, in the mean. */
      random: z.object({ perplexityRatio: z.number(), divergence: z.number() }),
    }),
  }),
  /** The first prompts of each class, with the likeliest token before, after swapping the component, and after swapping the whole activation. */
  examples: z.array(
    z.object({ row: z.number().int(), before: said, component: said, whole: said, partner: z.number().int() }),
  ),
});

export type Effect = z.infer<typeof effect>;
export type Evidence = z.infer<typeof evidenceSchema>;
