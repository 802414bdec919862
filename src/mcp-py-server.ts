#!/usr/bin/env node
/** `mcp-py-server`, as settings made for the python-interpreter server name it: `cuvette mcp`. */

import { runAs } from './alias.ts';

await runAs('mcp');
