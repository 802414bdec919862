/** A reporter for vitest that tells the test run, over the channel between the two processes, of each test as it ends. */

export default class Progress {
  onTestCaseResult(test) {
    const { state } = test.result();
    process.send?.({ [state]: 1 });
  }

  /** A file that could not be loaded, or whose hooks failed, has no test that failed. */
  onTestModuleEnd(module) {
    process.send?.(module.errors().length > 0 ? { failed: 1 } : {});
  }

  onTestRunEnd(_, unhandledErrors) {
    process.send?.({ failed: unhandledErrors.length });
  }
}
