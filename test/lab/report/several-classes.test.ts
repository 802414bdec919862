import { expect, test } from 'vitest';
import { decide } from '../../../src/lab/causality/decide.ts';
import { runProtocol } from '../../../src/lab/causality/protocol.ts';
import { renderReport } from '../../../src/lab/report/report.ts';
import { drawRecord } from '../../../src/lab/report/terminal.ts';
import { PIPED } from '../../../src/lab/report/terminal-style.ts';
import { context } from '../causality/questions.ts';
import { createStructured } from '../causality/structured-engine.ts';
import { classesOnPlane } from '../causality/structures.ts';
import { expectWellFormed } from './well-formed.ts';

test('the page and the terminal name every class, the subspace and how it was fitted', async () => {
  const model = createStructured(classesOnPlane(3));
  const question = model.question(model.rows(24, 1), {
    classes: ['fig', 'pear', 'plum'],
    direction: { kind: 'fit', method: 'interchange', rank: 2 },
  });
  const evidence = await runProtocol(model.engine, question, context());
  const record = { question, evidence, verdict: decide(evidence) };

  const page = renderReport(record);
  expectWellFormed(page);
  expect(page).toContain('of 3 classes (fig: 24, pear: 24, plum: 24)');
  expect(page).toContain('A subspace of 2 dimensions, tested as one');
  expect(page).toContain('Fitted on the discovery half, on interchange');
  expect(page).toContain('Mean AUROC over the 3 pairs of classes');
  expect(page).toContain('between plum and fig');
  expect(page).not.toMatch(/label [01]\b/);

  const drawn = drawRecord(record, PIPED);
  for (const name of ['fig', 'pear', 'plum']) expect(drawn.match(new RegExp(`^ +${name} `, 'gm'))).toHaveLength(2);
  expect(drawn).not.toMatch(/label [01]\b/);
});
