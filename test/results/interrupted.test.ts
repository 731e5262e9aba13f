import { expect, test } from 'vitest';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';
import { makeExecutableSchema, pageOf, type PageArgs } from '../support/imitations/honest.ts';

const SDL = `
  type Query { teams(first: Int, after: String): TeamsResult! }
  union TeamsResult = Teams | TeamsError
  type Teams { items: [Team!]! pageInfo: PageInfo! }
  type Team { id: Int! }
  type TeamsError { errorType: ErrorType! message: String! retryAfter: Float }
  enum ErrorType { FORBIDDEN }
  type PageInfo { hasNextPage: Boolean! endCursor: String }
`;
const TEAMS = Array.from({ length: 30 }, (_, id) => ({ id }));
const REFUSED = {
  __typename: 'TeamsError',
  errorType: 'FORBIDDEN',
  message: 'The rest is not for you.',
  retryAfter: 0.5,
};

test('an error in place of a page in the middle of a list keeps its type and words', async () => {
  const schema = makeExecutableSchema(SDL, {
    Query: {
      teams: (_: unknown, args: PageArgs) => {
        const page = pageOf(TEAMS, args, 10);
        return page.items.some(({ id }) => id === 25) ? REFUSED : { __typename: 'Teams', ...page };
      },
    },
  });
  await using world = await startGatewayOverSandbox({ schema }, { snapshot: SDL });
  const drain = await world.ask('{ allTeams { id } }');
  expect(drain.errors).toEqual([
    {
      message: expect.stringContaining('The rest is not for you.'),
      path: ['allTeams'],
      extensions: {
        code: 'DRAIN_INTERRUPTED',
        reason: 'FORBIDDEN',
        result: REFUSED,
        drained: expect.any(Number),
        resumeAfter: expect.any(String),
      },
    },
  ]);
  const connection = await world.ask('{ teamsConnection(first: 30) { nodes { id } } }');
  expect(connection).toEqual({
    data: { teamsConnection: null },
    errors: [
      {
        message: REFUSED.message,
        path: ['teamsConnection'],
        extensions: { code: 'FORBIDDEN', result: REFUSED },
      },
    ],
  });
});
