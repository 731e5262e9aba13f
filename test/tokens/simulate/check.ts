import fc from 'fast-check';
import { runPlan } from './history.ts';
import { plan } from './plan.ts';

/**
 * Runs random histories. One that breaks a promise is made as short as possible, and the error has everything that
 * happened in it, step by step.
 */
export async function expectNoBrokenPromise(
  parameters: Pick<fc.Parameters<unknown>, 'seed' | 'numRuns'>,
): Promise<void> {
  const property = fc.asyncProperty(plan, async (each) => {
    const { violations, lines } = await runPlan(each);
    if (violations.length > 0) throw new Error([...lines, ...violations].join('\n'));
  });
  // Histories throw errors by the thousand, and only their messages are read.
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    await fc.assert(property, { ...parameters, unbiased: true });
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}
