import { expect, test } from 'vitest';
import { makeExecutableSchema } from '../support/executable-schema.ts';
import { honest, startGatewayOverFake, type Reply } from '../support/fake-upstream.ts';

const SDL = /* GraphQL */ `
  type Query {
    teams(first: Int, after: String): TeamPage!
    team(id: ID!): Team
  }
  type Team {
    id: ID!
    members(first: Int, after: String): MemberPage!
  }
  type Member {
    id: ID!
  }
  type TeamPage {
    items: [Team!]!
    pageInfo: PageInfo!
  }
  type MemberPage {
    items: [Member!]!
    pageInfo: PageInfo!
  }
  type PageInfo {
    hasNextPage: Boolean!
    endCursor: String
  }
`;
const TEAMS = 3_000;

test.each(['allMembers { id }', 'membersConnection { nodes { id } }'])(
  'others are answered while the %s of thousands of parents is made',
  async (list) => {
    const lastPage = Promise.withResolvers<void>();
    const watched: Reply = async (response, received, sandbox) => {
      response.once('finish', () => {
        const after = /"_rs_after":"(\d+)"/.exec(received.body)?.[1];
        if (Number(after) >= TEAMS - 50) lastPage.resolve();
      });
      await honest(response, received, sandbox);
    };
    await using gateway = await startGatewayOverFake(
      { schema: makeExecutableSchema(SDL, resolvers) },
      { snapshot: SDL },
    );
    gateway.upstream.answer(watched);
    const order: string[] = [];
    const all = gateway
      .ask<{ allTeams: object[] }>(`{ allTeams { ${list} } }`)
      .finally(() => order.push('all'));
    await Promise.race([lastPage.promise, all]);
    await gateway.ask('{ team(id: "1") { id } }');
    order.push('other');
    expect((await all).data.allTeams).toHaveLength(TEAMS);
    expect(order).toEqual(['other', 'all']);
  },
);

const resolvers = {
  Query: {
    teams: (_: unknown, { first, after }: { first?: number | null; after?: string | null }) => {
      const start = Number(after ?? 0);
      const end = Math.min(start + Math.min(first ?? 50, 50), TEAMS);
      const items = Array.from({ length: end - start }, (_item, at) => ({ id: start + at }));
      return { items, pageInfo: { hasNextPage: end < TEAMS, endCursor: String(end) } };
    },
    team: (_: unknown, { id }: { id: string }) => ({ id }),
  },
  Team: {
    members: ({ id }: { id: number }) => ({
      items: [{ id: `${id}-a` }, { id: `${id}-b` }],
      pageInfo: { hasNextPage: false, endCursor: 'end' },
    }),
  },
};
