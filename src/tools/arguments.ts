/** Arguments and hints that several tools share. */

import * as z from 'zod';

export const session = z.string().max(64).optional().describe('Default session if left out; "new": another.');
export const interpreter = z.string().max(200).default('builtin').describe('See list_interpreters.');

export const READS = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false };
export const CHANGES = { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false };
export const DESTROYS = { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false };
export const RUNS_CODE = { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true };
