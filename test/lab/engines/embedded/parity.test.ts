import { createEmbeddedEngine } from '../../../../src/lab/engines/embedded/embedded-engine.ts';
import { openModelFolder } from '../../../../src/lab/models/open-model.ts';
import { testParity } from '../parity-suite.ts';

testParity('the embedded engine', async (folder) => {
  const model = await openModelFolder(folder);
  return createEmbeddedEngine({ model, id: folder, threads: 2 }).finally(() => model.close());
});
