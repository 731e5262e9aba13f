import fc from 'fast-check';
import { runPlan, type History } from './history.ts';
import { plan, type Plan } from './plan.ts';

/** The history of a seed, as text. */
export async function historyFrom(seed: number): Promise<string> {
  let text: string | undefined;
  await check(seed, (each, history) => {
    text ??= textOf(each, history);
    return true;
  });
  return text!;
}

/**
 * Runs the histories of these seeds until one breaks a promise.
 *
 * @returns the shortest history that breaks it, with the command that replays it; undefined: none does
 */
export async function firstFailure(first: number, count: number): Promise<string | undefined> {
  // Histories throw errors by the thousand, and only their messages are read.
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    for (let seed = first; seed < first + count; seed += 1) {
      const failure = await failureFrom(seed);
      if (failure !== undefined) return failure;
    }
    return undefined;
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

async function failureFrom(seed: number): Promise<string | undefined> {
  const { failed, counterexample } = await check(seed, breaksNothing);
  if (!failed) return undefined;
  const [shortest] = counterexample!;
  const history = await runPlan(shortest);
  return [
    `The shortest history that fails, from seed ${seed}:`,
    textOf(shortest, history),
    ...history.violations,
    `To replay it: npm run simulate -- --seeds 1 --seed ${seed}`,
  ].join('\n\n');
}

function breaksNothing(_: Plan, { violations }: History): boolean {
  return violations.length === 0;
}

function check(seed: number, holds: (each: Plan, history: History) => boolean) {
  const property = fc.asyncProperty(plan, async (each) => holds(each, await runPlan(each)));
  return fc.check(property, { seed, numRuns: 1, unbiased: true });
}

function textOf({ steps: _steps, ...world }: Plan, { lines }: History): string {
  return [JSON.stringify(world), ...lines].join('\n');
}
