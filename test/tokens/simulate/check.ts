import fc from 'fast-check';
import { runPlan } from './history.ts';
import { plan } from './plan.ts';

/**
 * Runs random histories.
 *
 * @returns the shortest one that breaks a promise, step by step, with its seed; undefined: none does
 */
export async function brokenPromise(
  parameters: Pick<fc.Parameters<unknown>, 'seed' | 'numRuns'>,
): Promise<string | undefined> {
  const property = fc.asyncProperty(plan, async (each) => {
    const { violations, lines } = await runPlan(each);
    if (violations.length > 0) throw new Error([...lines, ...violations].join('\n'));
  });
  // Histories throw errors by the thousand, and only their messages are read.
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    const details = await fc.check(property, {
      ...parameters,
      unbiased: true,
      includeErrorInReport: true,
    });
    return (await fc.asyncDefaultReportMessage(details)) ?? undefined;
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}
