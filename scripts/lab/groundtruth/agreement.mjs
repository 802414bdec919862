/** Compares the runs of two engines: verdicts and reasons, and every number of the evidence as far as float32 carries. */

import { CLOSE, disagreements, HASH } from '../../../build/lab.js';

/** Prints what they agree on, and tells whether they agree on everything. */
export function reportAgreement(runs, others) {
  const pairs = runs.map((run, i) => [run, others[i]]);
  const differing = (what, byDigits) =>
    pairs.filter(([run, other]) => {
      const paths = disagreements(what(run), what(other), { ignored: [HASH], byDigits });
      if (paths.length > 0) console.log(`${run.family} ${run.seed}: ${paths.length} differ, as ${paths[0]}`);
      return paths.length > 0;
    });
  const agreeing = (those) => `${runs.length - those.length} of ${runs.length}`;
  const verdicts = differing(({ verdict, reason }) => ({ verdict, reason }), false);
  const numbers = differing(withoutEngine, true);
  const absolutely = differing(withoutEngine, false);
  console.log(
    `Torch and the embedded engine agree on verdict and reason in ${agreeing(verdicts)} runs, ` +
      `and on every number of the evidence, each draw of a null distribution included, within ${CLOSE} (beyond 10, ${CLOSE / 10} of itself) in ${agreeing(numbers)}; ` +
      `within ${CLOSE} however large it is, in ${agreeing(absolutely)}.`,
  );
  return verdicts.length === 0 && numbers.length === 0;
}

/** Nor what only a tool adds: where a direction came from. */
function withoutEngine({ evidence, ...run }) {
  const { source: _, ...direction } = evidence.direction;
  return { ...run, evidence: { ...evidence, direction, model: undefined } };
}
