import { expect, test } from 'vitest';
import { joinedAnswer } from '../support/clients/multipart.ts';
import { startGatewayOverService } from '../support/gateway/over-service.ts';
import { makeExecutableSchema, type PageArgs, pageOf } from '../service/lists.ts';

// A list behind a result, of which a page in the middle is an error. Random results are in schema/random-lists.test.ts.

const SDL = `
  type Query { teams(first: Int, after: String): TeamsResult! }
  union TeamsResult = Teams | TeamsError | Closed
  type Teams { items: [Team!]! pageInfo: PageInfo! }
  type Team { id: Int! }
  type TeamsError { errorType: ErrorType! message: String! retryAfter: Float }
  "Its field has another type than that of the other error."
  type Closed { retryAfter: String }
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
const facts = { result: REFUSED };
const interrupted = {
  code: 'DRAIN_INTERRUPTED',
  reason: 'FORBIDDEN',
  drained: expect.any(Number) as number,
  resumeAfter: expect.any(String) as string,
};

test.each([
  ['a drain', '{ list: allTeams { id } }', interrupted],
  ['a stream', '{ list: allTeams @stream { id } }', interrupted],
  ['a connection', '{ list: teamsConnection(first: 30) { nodes { id } } }', { code: 'FORBIDDEN' }],
])(
  'an error in place of a page keeps its type and words in %s',
  async (what, query, extensions) => {
    const schema = makeExecutableSchema(SDL, {
      Query: {
        teams: (_: unknown, args: PageArgs) => {
          const page = pageOf(TEAMS, args, 10);
          return page.items.some(({ id }) => id === 25)
            ? REFUSED
            : { __typename: 'Teams', ...page };
        },
      },
    });
    await using gateway = await startGatewayOverService({ schema }, { snapshot: SDL });
    const accept = what === 'a stream' ? 'multipart/mixed;deferSpec=20220824' : 'application/json';
    const { data, errors } = await joinedAnswer(gateway, { query, variables: {} }, accept);
    expect(data).toEqual({ list: what === 'a stream' ? TEAMS.slice(0, 20) : null });
    expect(errors).toEqual([
      {
        message: expect.stringContaining(REFUSED.message),
        path: ['list'],
        extensions: { ...extensions, ...facts },
      },
    ]);
  },
);
