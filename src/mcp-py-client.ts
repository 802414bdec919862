#!/usr/bin/env node
/** Runs `cuvette run` under the name `mcp-py-client`, which settings made for the python-interpreter server use. */

import { runAs } from './alias.ts';

await runAs('run');
