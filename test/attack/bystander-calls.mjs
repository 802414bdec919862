/** Calls one session of a service again and again, checks every answer, and tells how long each took. Runs as a worker thread until it is told to stop. */

import { setTimeout as sleep } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';

const { url, key, entity_id, mark, every } = workerData;
const request = {
  method: 'POST',
  headers: { 'content-type': 'application/json', 'x-api-key': key },
  body: JSON.stringify({ lang: 'py', code: 'count += 1; print(mark, count)', entity_id }),
};
let isOver = false;
let calls = 0;
parentPort.once('message', () => {
  isOver = true;
});

while (!isOver) {
  const began = performance.now();
  const failure = await call().catch(String);
  const took = performance.now() - began;
  parentPort.postMessage({ took, failure });
  await sleep(Math.max(0, every - took));
}

/** Resolves to what is wrong with the answer, if something is. */
async function call() {
  const response = await fetch(url, request);
  const text = await response.text();
  if (response.status !== 200) return `${response.status} ${text}`;
  calls += 1;
  const { stdout, stderr } = JSON.parse(text);
  const expected = `${mark} ${calls}\n`;
  return stdout === expected ? undefined : `${JSON.stringify(stdout)} for ${JSON.stringify(expected)} ${stderr}`;
}
