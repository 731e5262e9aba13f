import { print, type GraphQLResolveInfo } from 'graphql';
import { expect, test } from 'vitest';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';
import { makeExecutableSchema, pageOf, type PageArgs } from '../support/imitations/honest.ts';

const SDL = `
  type Query { viewer: ViewerResult! }
  union ViewerResult = Viewer | ViewerError
  type Viewer { company: CompanyResult }
  union CompanyResult = Company | CompanyError
  type Company { id: Int! people(first: Int, after: String): People! }
  type People { items: [Person!]! pageInfo: PageInfo! }
  type Person { id: Int! }
  type ViewerError { message: String! }
  type CompanyError { errorType: ErrorType! message: String! }
  enum ErrorType { FORBIDDEN NOT_FOUND }
  type PageInfo { hasNextPage: Boolean! endCursor: String }
`;
const PEOPLE = Array.from({ length: 130 }, (_, id) => ({ id }));

test('a list below an object goes on through the results that lead to the object', async () => {
  let refused: string | undefined;
  const schema = makeExecutableSchema(SDL, {
    Query: { viewer: () => ({ __typename: 'Viewer' }) },
    Viewer: {
      company: (_: unknown, __: unknown, ___: unknown, { fieldNodes }: GraphQLResolveInfo) => {
        const isForList = fieldNodes.some((node) => print(node).includes('people'));
        return refused !== undefined && isForList
          ? { __typename: 'CompanyError', errorType: refused, message: 'Not now.' }
          : { __typename: 'Company', id: 7 };
      },
    },
    Company: { people: (_: unknown, args: PageArgs) => pageOf(PEOPLE, args, 50) },
  });
  await using world = await startGatewayOverSandbox({ schema }, { snapshot: SDL });
  const ask = (field: string) =>
    world.ask(`{ viewer { ... on Viewer { company { ... on Company { list: ${field} } } } } }`);
  const { data, errors } = await ask('allPeople { id }');
  expect(errors).toBeUndefined();
  expect(data).toEqual({ viewer: { company: { list: PEOPLE } } });

  const fail = async (errorType: string) => {
    refused = errorType;
    const answer = await ask('peopleConnection(first: 100) { nodes { id } }');
    return answer.errors![0]!;
  };
  expect(await fail('FORBIDDEN')).toMatchObject({
    message: 'Not now.',
    extensions: { code: 'FORBIDDEN', result: { errorType: 'FORBIDDEN' } },
  });
  expect(await fail('NOT_FOUND')).toMatchObject({
    message: expect.stringContaining('no longer has this Company'),
  });
});
