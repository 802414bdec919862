/** The Pythons of the torch suite: one with torch and transformers, and one that has what spreads a model over devices and loads it in 8 or 4 bit, and matplotlib, beside it. */

import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../../../../src/errors.ts';
import { probePython } from '../../../../src/interpreters/python/probe.ts';
import { findTorchPython } from '../../../../src/lab/engines/torch/torch-python.ts';
import { prepareVenv, type Say, testCache } from '../../../prepare.ts';

const RICH = ['bitsandbytes==0.50.2', 'accelerate==1.15.0', 'psutil==7.2.2', 'matplotlib==3.10.8'];

export interface PreparedTorch {
  plain: string;
  /** Null where its packages cannot be installed; that is told, and on CI an error. */
  rich: string | null;
}

export async function prepareTorch(say: Say): Promise<PreparedTorch> {
  const { signal } = new AbortController();
  const wanted = process.env.CUVETTE_TORCH_PYTHON;
  const plain = await findTorchPython({ wanted, cache: testCache(), signal, progress: say });
  try {
    return { plain, rich: await prepareRich(plain, say) };
  } catch (error) {
    if (process.env.CI) throw error;
    say(`Without accelerate, bitsandbytes and matplotlib, some things are not tested: ${messageOf(error)}`);
    return { plain, rich: null };
  }
}

async function prepareRich(plain: string, say: Say): Promise<string> {
  const { site, version } = await probePython(plain);
  const name = `rich-torch-${version}-${createHash('sha256').update(site).digest('hex').slice(0, 8)}`;
  const begin = async (folder: string) => {
    writeFileSync(join((await probePython(join(folder, 'bin', 'python'))).site, 'torch.pth'), `${site}\n`);
  };
  return join(await prepareVenv(name, { python: plain, packages: RICH, say, begin }), 'bin', 'python');
}
