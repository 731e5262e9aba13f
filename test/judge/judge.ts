import fc from 'fast-check';
import { parse, validate } from 'graphql';
import { difference, isRefused, type Difference } from './compare.ts';
import { withCursors, type Answer, type Ask } from './cursors.ts';
import { FEATURES, featuresOf } from './features.ts';
import { randomOperation, type Operation } from './operation.ts';
import { explanationOf } from './explained.ts';
import { shrink } from './shrink.ts';
import type { World } from './world.ts';

export interface Judgement {
  /** Operations with data, without (of those, `refused` before anything was executed), in all. */
  readonly counts: Record<'all' | 'data' | 'noData' | 'refused', number>;
  readonly features: Map<string, number>;
  readonly differences: Map<string, Found>;
}

/** A kind of difference with the smallest operation that shows it. */
export interface Found extends Difference {
  readonly between: string;
  readonly world: string;
  count: number;
  readonly operation: Operation;
  /** The rule that explains it; undefined: it is a fault. */
  readonly rule: string | undefined;
}

export function newJudgement(): Judgement {
  return {
    counts: { all: 0, data: 0, noData: 0, refused: 0 },
    features: new Map(FEATURES.map((feature) => [feature, 0])),
    differences: new Map(),
  };
}

/** Sides by their names. Every side is compared with the last one. */
export type Sides = ReadonlyMap<string, Ask>;

/** Sends random operations to all sides, and adds what it saw to the judgement. */
export async function judge(
  world: World,
  sides: Sides,
  { operations, seed }: { operations: number; seed: number },
  judgement: Judgement,
): Promise<void> {
  const asks = new Map([...sides].map(([name, ask]) => [name, withCursors(ask)]));
  const [tested, askTested] = [...asks].at(-1)!;
  let count = 0;
  for (let chunk = 0; count < operations; chunk += 1) {
    const made = fc.sample(
      fc.gen().map((g) => randomOperation(world, g)),
      { numRuns: 100, seed: seed * 10_007 + chunk, unbiased: true },
    );
    for (const operation of made) {
      if (count >= operations || !isValid(world, operation)) continue;
      count += 1;
      const answer = await askTested(operation);
      record(judgement, world, operation, answer);
      for (const [name, ask] of asks) {
        if (name === tested) continue;
        const expected = await ask(operation);
        const found = difference(answer, expected);
        if (found)
          await keep(judgement, {
            world,
            operation,
            found,
            between: `${tested} and ${name}`,
            ask,
            askTested,
          });
      }
    }
  }
}

function isValid({ served }: World, { query }: Operation): boolean {
  return query.length < MOST_CHARACTERS && validate(served.schema, parse(query)).length === 0;
}

const MOST_CHARACTERS = 20_000;

function record(
  { counts, features }: Judgement,
  world: World,
  operation: Operation,
  answer: Answer,
): void {
  counts.all += 1;
  if (isRefused(answer)) counts.refused += 1;
  else counts[answer.data === null ? 'noData' : 'data'] += 1;
  if (!answer.data) return;
  for (const feature of featuresOf(world, operation, answer))
    features.set(feature, (features.get(feature) ?? 0) + 1);
}

interface Seen {
  readonly world: World;
  readonly operation: Operation;
  readonly found: Difference;
  readonly between: string;
  readonly ask: Ask;
  readonly askTested: Ask;
}

async function keep(
  { differences }: Judgement,
  { world, operation, found, between, ask, askTested }: Seen,
): Promise<void> {
  const rule = explanationOf(found.kind, operation);
  const key = `${between}: ${rule ?? found.kind}`;
  const known = differences.get(key);
  if (known) {
    known.count += 1;
    return;
  }
  const again = async (smaller: Operation) =>
    difference(await askTested(smaller), await ask(smaller));
  const smallest = await shrink(operation, world.served.schema, async (smaller) => {
    const kind = (await again(smaller))?.kind;
    return kind === found.kind && explanationOf(kind, smaller) === rule;
  });
  const small = (await again(smallest)) ?? found;
  differences.set(key, {
    ...small,
    kind: found.kind,
    between,
    world: world.name,
    count: 1,
    operation: smallest,
    rule,
  });
}
