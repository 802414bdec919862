/**
 * Spends one error rate over questions that come one by one, without knowing how many there will be. Levels are the same within blocks of questions,
 * so that the order within a block changes nothing: half of the rate for the first two, a quarter for the next four, an eighth for the next eight, and so on.
 */

/** The probability of any false finding in all questions of a family together. */
export const ERROR_RATE = 0.05;

const FIRST_BLOCK = 2;

/** The level of a question, from 1 on. All levels together are the error rate. */
export function levelOfQuestion(question: number): number {
  const { block, size } = blockOf(question);
  return ERROR_RATE / 2 ** (block + 1) / size;
}

/** What the questions up to this one have spent of the error rate. */
export function spentUpTo(question: number): number {
  const { block, size, first } = blockOf(question);
  return ERROR_RATE * (1 - 1 / 2 ** block) + ((question - first + 1) / size) * (ERROR_RATE / 2 ** (block + 1));
}

function blockOf(question: number): { block: number; size: number; first: number } {
  let [block, size, first] = [0, FIRST_BLOCK, 1];
  while (question >= first + size) {
    first += size;
    size *= 2;
    block++;
  }
  return { block, size, first };
}
