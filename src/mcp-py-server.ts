#!/usr/bin/env node
/** Runs `cuvette mcp` under the name `mcp-py-server`, which settings made for the python-interpreter server use. */

import { runAs } from './alias.ts';

await runAs('mcp');
