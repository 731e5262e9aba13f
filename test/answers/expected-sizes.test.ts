import { describe, expect, onTestFinished, test } from 'vitest';
import type { Answer, TestGatewayOptions } from '../support/gateway/gateway.ts';
import { makeExecutableSchema, pageOf, type PageArgs } from '../support/imitations/honest.ts';
import { startGatewayOverFake } from '../support/gateway/over-fake.ts';

const BY_LIST = `
  type Person { id: ID! name: String text: String }
  type PersonPage { items: [Person!]! pageInfo: PageInfo! }
  type PageInfo { hasNextPage: Boolean! endCursor: String }
  type Query { persons(first: Int, after: String): PersonPage! }
`;
const BY_ID = BY_LIST.replace('type Query {', 'type Query { person(id: ID!): Person');

describe.each([
  ['the field of an id', BY_ID],
  ['a list', BY_LIST],
])('records that are found with %s', (_way, snapshot) => {
  const PERSONS = 600;
  const representations = Array.from({ length: PERSONS }, (_, id) => ({
    __typename: 'Person',
    id: String(id),
  }));

  test('count against the memory for answers', async () => {
    const gateway = await start({ answerBytes: 1_000_000 });
    const { errors } = await gateway.ask(entities('text'), { r: representations });
    expect(errors).not.toEqual([]);
    // Answers of the service that happen to arrive at the same time are refused as such.
    const others = codesOf({ errors });
    others.delete('RATE_LIMITED');
    others.delete('OPERATION_TOO_COMPLEX');
    expect(others.size).toBe(0);
    // A page that is too large is not narrowed down to its records.
    expect(gateway.upstream.received.length).toBeLessThan(40);
    const few = await gateway.ask<{ _entities: object[] }>(entities('id'), {
      r: representations.slice(0, 10),
    });
    expect(few.data._entities).toHaveLength(10);
    expect(await gateway.gateway.metrics.text()).toContain('\nrecruiting_answer_bytes 0\n');
  });

  async function start(config: NonNullable<TestGatewayOptions['config']>) {
    const persons = representations.map(({ id }) => ({
      id,
      name: 'Ada',
      text: 'x'.repeat(5_000),
    }));
    const find = (_: unknown, { id }: { id: string }) => persons[Number(id)] ?? null;
    const list = (_: unknown, args: PageArgs) => pageOf(persons, args);
    const resolvers = snapshot === BY_ID ? { person: find, persons: list } : { persons: list };
    const schema = makeExecutableSchema(snapshot, { Query: resolvers });
    const gateway = await startGatewayOverFake({ schema }, { snapshot, config });
    onTestFinished(() => gateway[Symbol.asyncDispose]());
    return gateway;
  }
});

test('references of several fields cost as much as in one field', async () => {
  const schema = makeExecutableSchema(BY_ID, { Query: { person: () => null } });
  const gateway = await startGatewayOverFake(
    { schema },
    { snapshot: BY_ID, config: { pagesPerMinute: 30 } },
  );
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  const fields = Array.from(
    { length: 29 },
    (_, at) => `a${at}: _entities(representations: $r) { __typename }`,
  );
  const ask = () =>
    gateway.ask(`query ($r: [_Any!]!) { ${fields.join(' ')} }`, { r: Array(99).fill(0) });
  expect(codesOf(await ask())).toEqual(new Set(['BAD_USER_INPUT']));
  expect(codesOf(await ask())).toContain('RATE_LIMITED');
});

function entities(selection: string): string {
  return `query ($r: [_Any!]!) { _entities(representations: $r) { ... on Person { ${selection} } } }`;
}

function codesOf({
  errors = [],
}: {
  readonly errors?: Answer<unknown>['errors'] | undefined;
}): Set<unknown> {
  return new Set(errors.map(({ extensions }) => extensions?.['code']));
}
