/** Answers the questions of the ground-truth suite: by the embedded engine, by torch in a copy of one Python, or by a lab that is served. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  askEngine,
  askQuestion,
  createEmbeddedEngine,
  createLabs,
  createTorchEngine,
  createZygotes,
  openModelFolder,
} from '../../../build/lab.js';
import { serveLab } from '../serve-lab.mjs';

const signal = new AbortController().signal;

export async function openEmbedded(folder) {
  return createEmbeddedEngine({ model: await openModelFolder(folder), id: 'toy' });
}

export function askEmbedded(version) {
  return askEngine(openEmbedded, { version, signal });
}

/** Torch is imported once, and every model is opened in a copy of that Python. */
export async function withTorch(python, version, work) {
  const project = mkdtempSync(join(tmpdir(), 'cv-'));
  const runtime = join(project, 'r');
  const zygotes = createZygotes(runtime);
  const preload = ['torch', 'transformers.models.llama.modeling_llama'];
  // What waits for a zygote keeps no program from ending.
  const alive = setInterval(() => {}, 60_000);
  try {
    const engineFor = (folder) =>
      createTorchEngine({ id: 'toy', folder, python, zygotes, preload, runtime, project, dtype: 'float32' });
    return await work(askEngine(engineFor, { version, signal }));
  } finally {
    await zygotes.dismiss(true);
    rmSync(project, { recursive: true, force: true });
    clearInterval(alive);
  }
}

/** As an agent asks it, with tools. */
export function askServed(python) {
  return async (model, question) => {
    const folder = mkdtempSync(join(tmpdir(), 'cv-'));
    const labs = createLabs({ data: join(folder, 'agent'), cache: join(folder, 'cache'), project: folder });
    let server;
    try {
      server = await serveLab({ model, home: join(folder, 'home'), python, cwd: folder });
      const context = { signal, progress: () => {} };
      await labs.attach('served', server.url, server.token, context);
      const call = async (tool, args) => (await labs.call('served', tool, args, context)).answer;
      return (await askQuestion(call, question)).record;
    } finally {
      await labs.close();
      await server?.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  };
}
