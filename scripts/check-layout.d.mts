/** What is wrong in a folder of sources, as lines to print. */
export function checkLayout(root: string): string[];
