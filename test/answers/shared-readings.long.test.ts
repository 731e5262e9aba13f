import fc from 'fast-check';
import { Kind, parse, print, validate, visit, type ConstDirectiveNode } from 'graphql';
import { expect, test } from 'vitest';
import { randomOperation } from '../judge/operation.ts';
import { fullWorld } from '../judge/world.ts';
import { ACCEPTED, joinedAnswer } from '../support/clients/multipart.ts';
import { startGatewayOverService } from '../support/gateway/over-service.ts';
import { randomRuns } from '../support/random/random-runs.ts';

type Variables = Readonly<Record<string, unknown>>;

/** Of a request that shares its walk with one that needs other records, more or less may have been read. */
const CURSORS = /"(?:endCursor|startCursor|cursor|drained|resumeAfter)":(?:null|\d+|"[^"]*")/g;

test('callers who send one text at the same time get what they get alone', async () => {
  const world = fullWorld();
  const { schema, snapshot, served } = world;
  const config = { maxDepth: 100, maxAliases: 1_000, maxTokens: 20_000 };
  await using gateway = await startGatewayOverService({ schema }, { snapshot, config });
  await fc.assert(
    fc.asyncProperty(fc.gen(), async (g) => {
      const { query: text, variables } = randomOperation(world, g);
      const query = streamed(text);
      fc.pre(query.length < 20_000 && validate(served.schema, parse(query)).length === 0);
      const callers = [variables, negated(variables)].flatMap((sent) =>
        ACCEPTED.map((accept) => async () => {
          const answer = await joinedAnswer(gateway, { query, variables: sent }, accept);
          return JSON.stringify(answer).replaceAll(CURSORS, '');
        }),
      );
      const alone: string[] = [];
      for (const caller of callers) alone.push(await caller());
      expect(await Promise.all(callers.map((caller) => caller()))).toEqual(alone);
    }),
    { numRuns: randomRuns(200), interruptAfterTimeLimit: 60_000 },
  );
}, 120_000);

const STREAM: ConstDirectiveNode = {
  kind: Kind.DIRECTIVE,
  name: { kind: Kind.NAME, value: 'stream' },
};

/** Asks for each list of the root in parts. */
function streamed(text: string): string {
  const document = visit(parse(text, { noLocation: true }), {
    Field: (node) => {
      const { name, directives = [] } = node;
      const isList = /^all[A-Z](?!penings$)/.test(name.value);
      return isList ? { ...node, directives: [...directives, STREAM] } : false;
    },
    FragmentDefinition: () => false,
  });
  return print(document);
}

/** The same variables, with every condition the other way round. */
function negated(variables: Variables): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(variables).map(([name, value]) => [
      name,
      typeof value === 'boolean' ? !value : value,
    ]),
  );
}
