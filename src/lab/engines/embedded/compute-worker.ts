/** A thread that helps with what the engine's thread computes, until it is ended. Runs as a worker thread. */

import { workerData } from 'node:worker_threads';
import { CONTROL } from './heap.ts';
import { instantiateKernel } from './kernel.ts';
import type { ComputeWorkerData } from './messages.ts';

const { module, memory, scratch } = workerData as ComputeWorkerData;
instantiateKernel(module, memory).help(CONTROL, scratch);
