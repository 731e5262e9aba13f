import { expect, test } from 'vitest';
import { makeExecutableSchema, pageOf, type PageArgs } from '../../support/imitations/honest.ts';
import { startGatewayOverFake } from '../../support/gateway/over-fake.ts';

const SDL = `
  type Person { id: ID! }
  type PersonPage { items: [Person]! pageInfo: PageInfo! }
  type PageInfo { hasNextPage: Boolean! endCursor: String }
  type Query { persons(first: Int, after: String): PersonPage! }
`;

test.each([
  ['a null in the list', null],
  ['an id that comes twice', { id: 'p70' }],
])(
  '%s does not prevent other records from being found after a walk of the whole list',
  async (_what, odd) => {
    const all = Array.from({ length: 120 }, (_value, at) => (at === 71 ? odd : { id: `p${at}` }));
    const schema = makeExecutableSchema(SDL, {
      Query: { persons: (_: unknown, args: PageArgs) => pageOf(all, args) },
    });
    await using gateway = await startGatewayOverFake({ schema }, { snapshot: SDL });
    expect(await gateway.ask('{ person(id: "unknown") { id } }')).toEqual({
      data: { person: null },
    });
    const { received } = gateway.upstream;
    const before = received.length;
    expect(await gateway.ask('{ person(id: "p90") { id } }')).toEqual({
      data: { person: { id: 'p90' } },
    });
    expect(await gateway.ask('{ person(id: "other") { id } }')).toEqual({ data: { person: null } });
    expect(received.length - before).toBe(1);
  },
);
