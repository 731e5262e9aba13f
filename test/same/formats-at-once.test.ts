import fc, { type GeneratorValue } from 'fast-check';
import { parse, validate } from 'graphql';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { encodeGlobalId } from '../../src/answers/global-id.ts';
import { isGatewayCursor } from '../../src/paging/cursor.ts';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';
import { fullScalar, fullService } from '../support/imitations/honest.ts';
import {
  ACCEPTED,
  joinedAnswer,
  type Accepted,
  type JoinedAnswer,
} from '../support/clients/multipart.ts';
import { hasFewDirectives, randomOperation } from '../support/random/random-operation.ts';
import { randomRuns, usually } from '../support/random/random-runs.ts';

/*
 * Callers send one random operation at the same time, each in another format, with `@defer` and `@stream` anywhere.
 * They share what they can, and still each gets what it gets alone.
 */

type World = Awaited<ReturnType<typeof startGatewayOverSandbox>>;

interface Caller {
  readonly accept: Accepted;
  readonly variables: Record<string, unknown>;
}

const worlds = new Map<string, World>();
beforeAll(async () => {
  for (const nodeInterface of [false, true]) {
    // An error of one record makes a page null if no record may be, so errors depend on how a list is cut into pages.
    const service = fullService({ without: ['activeCandidates', 'applicants', 'openings'] });
    const config = { nodeInterface, maxAliases: 1_000, maxDepth: 100, maxTokens: 20_000 };
    const world = await startGatewayOverSandbox(
      { schema: service.schema },
      { snapshot: service.sdl, config },
    );
    await world.ask('{ viewer { __typename } }');
    worlds.set(nodeInterface ? 'on' : 'off', world);
  }
});
afterAll(async () => {
  for (const world of worlds.values()) await world[Symbol.asyncDispose]();
});

test.each([
  ['off', 60],
  ['on', 60],
])(
  'callers who send one operation in several formats at the same time get what each gets alone; NODE_INTERFACE=%s',
  async (nodeInterface, runs) => {
    const world = worlds.get(nodeInterface)!;
    const { schema } = world.gateway.served;
    const scalar = (name: string, g: GeneratorValue) => scalarFor(name, g, nodeInterface === 'on');
    let [valid, inParts] = [0, 0];
    await fc.assert(
      fc.asyncProperty(fc.gen(), async (g) => {
        const { query, variables } = randomOperation(schema, g, { scalar }, { incremental: true });
        const document = parse(query);
        fc.pre(validate(schema, document).length === 0 && hasFewDirectives(document));
        const callers: Caller[] = ACCEPTED.map((accept) => ({ accept, variables }));
        // Another outcome of the conditions, and so another plan for the same text.
        callers.push({
          accept: g(fc.constantFrom, ...ACCEPTED),
          variables: withOthers(variables, g),
        });
        const answer = ({ accept, variables: callerVariables }: Caller) =>
          joinedAnswer(world, { query, variables: callerVariables }, accept).then(comparable);
        const alone: JoinedAnswer[] = [];
        for (const caller of callers) alone.push(await answer(caller));
        valid += 1;
        if (/@defer|@stream/.test(query)) inParts += 1;
        const order = g(fc.shuffledSubarray, [0, 1, 2, 3], { minLength: 2 });
        const together = await Promise.all(order.map((at) => answer(callers[at]!)));
        const sent = query + JSON.stringify(variables);
        for (const [i, at] of order.entries()) {
          expect(together[i], `${sent}, ${order.join()}: ${at}`).toEqual(alone[at]);
        }
        const [whole, ...joined] = alone.slice(0, ACCEPTED.length);
        for (const result of joined) {
          // A null that is not allowed takes only the part with it that it is in.
          if (whole!.errors.length > 0 || result.errors.length > 0) continue;
          expect(result.data, sent).toEqual(whole!.data);
        }
      }),
      {
        timeout: 60_000,
        interruptAfterTimeLimit: 100_000,
        numRuns: randomRuns(runs),
        maxSkipsPerRun: 400,
      },
    );
    expect(inParts).toBeGreaterThanOrEqual(usually(valid / 3));
  },
  120_000,
);

const GLOBAL_IDS = ['Candidate:2', 'Candidate:7', 'Vacancy:3', 'Vacancy:900'].map((text) => {
  const [type = '', id = ''] = text.split(':');
  return encodeGlobalId({ type, id });
});

function scalarFor(name: string, g: GeneratorValue, hasGlobalIds: boolean): unknown {
  if (name === 'ID' && hasGlobalIds) return g(fc.constantFrom, ...GLOBAL_IDS);
  return name === 'Int' ? g(fc.integer, { min: -1, max: 8 }) : fullScalar(name, g);
}

/** Changes the conditions. Null is an error at the object around the condition. */
function withOthers(
  variables: Record<string, unknown>,
  g: GeneratorValue,
): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(variables).map(([name, value]) => [
      name,
      typeof value === 'boolean' ? g(fc.constantFrom, !value, null) : value,
    ]),
  );
}

/** Positions depend on how earlier callers have cut the list into pages, and so do the texts of cursors. */
function comparable(answer: JoinedAnswer): JoinedAnswer {
  return JSON.parse(JSON.stringify(answer), (_key, value: unknown) =>
    typeof value === 'string' && isGatewayCursor(value) ? 'a cursor' : value,
  ) as JoinedAnswer;
}
