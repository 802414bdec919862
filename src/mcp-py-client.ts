#!/usr/bin/env node
/** `mcp-py-client`, as settings made for the python-interpreter server name it: `cuvette run`. */

import { runAs } from './alias.ts';

await runAs('run');
