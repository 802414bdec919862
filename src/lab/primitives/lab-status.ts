/** Defines `colab_status`, `list_probes` and `list_manifests`. */

import * as z from 'zod';
import { manifestSchema } from '../core/manifest.ts';
import * as fields from './fields.ts';
import { definePrimitive } from './primitive.ts';

export const status = definePrimitive({
  name: 'colab_status',
  title: 'Lab status',
  description: "Which model the lab has open, and what it keeps. Lists the lab's other tools.",
  route: { method: 'GET', path: '/health' },
  effect: 'reads',
  input: z.object({}),
  output: z.object({
    ok: z.boolean(),
    version: z.string(),
    /** Of the routes and what they take: two labs that have the same understand each other. */
    protocol: z.number(),
    model_id: z.string(),
    device: z.string(),
    dtype: z.string(),
    engine: z.string(),
    architecture: z.string(),
    layers: z.number(),
    d_model: z.number(),
    /** Of each layer; a lab of an earlier version does not tell. */
    heads: z.number().optional(),
    /** Absent where heads cannot be told apart. */
    d_head: z.number().optional(),
    vocabulary: z.number(),
    context: z.number(),
    parameters: z.number(),
    weights_sha256: z.string(),
    tokenizer_sha256: z.string(),
    probes_loaded: z.number(),
    /** Those that can be named. They are on disk. */
    captures_in_memory: z.number(),
    /** Questions of causality asked in this lab session, and what they have spent of its error rate of 0.05. */
    family: z.number(),
    error_spent: z.number().optional(),
    /** Of what runs code alone and has no model: what keeps that code from harm. */
    sandbox: z.string().optional(),
  }),
});

export const listProbes = definePrimitive({
  name: 'list_probes',
  title: 'List probes',
  description: "The lab's probes: id, layer, position, training.",
  route: { method: 'GET', path: '/list-probes' },
  effect: 'reads',
  input: z.object({}),
  output: z.object({ model_id: z.string(), probes: z.array(fields.shownProbe) }),
});

export const listManifests = definePrimitive({
  name: 'list_manifests',
  title: 'List manifests',
  description: 'The latest experiments, newest first, with their manifest hashes.',
  route: { method: 'GET', path: '/manifests' },
  effect: 'reads',
  input: z.object({ limit: z.coerce.number().int().min(1).max(1000).default(50) }),
  output: z.object({ manifests: z.array(manifestSchema) }),
});
