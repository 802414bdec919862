/** Runs as a worker thread that helps the engine's thread with its operations until it is terminated. */

import { workerData } from 'node:worker_threads';
import { CONTROL } from './heap.ts';
import { instantiateKernel } from './kernel.ts';
import type { ComputeWorkerData } from './messages.ts';

const { module, memory, scratch }: ComputeWorkerData = workerData;
instantiateKernel(module, memory).help(CONTROL, scratch);
