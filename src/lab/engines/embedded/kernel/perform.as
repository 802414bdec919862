/** One item of an operation of any kind. The numbers of kinds are those of `operations.ts`. */

import { activate, capRows } from './activation';
import { attend, mixPatterns } from './attention';
import { compareLogits, measureLogits } from './surprise';
import { prepareHeads } from './heads';
import { multiply } from './matmul';
import { normalize } from './norm';
import { KIND } from './operation';
import { addRows, embed } from './rows';

export function perform(operation: usize, item: i32, scratch: usize): void {
  switch (load<u32>(operation, KIND)) {
    case 0: return multiply(operation, item);
    case 1: return normalize(operation, item);
    case 2: return prepareHeads(operation, item);
    case 3: return attend(operation, item, scratch);
    case 4: return activate(operation, item);
    case 5: return addRows(operation, item);
    case 6: return embed(operation, item);
    case 7: return measureLogits(operation, item);
    case 8: return compareLogits(operation, item);
    case 9: return capRows(operation, item);
    case 10: return mixPatterns(operation, item, scratch);
  }
}
