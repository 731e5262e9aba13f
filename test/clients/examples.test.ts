import { CombinedGraphQLErrors } from '@apollo/client';
import { filter, firstValueFrom } from 'rxjs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import * as apollo from '../../examples/apollo/people.ts';
import { readPeople, type Person } from '../../examples/typed-documents/people.ts';
import * as urql from '../../examples/urql/people.ts';
import { listen } from '../../src/http/listen.ts';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';

let gateway: Awaited<ReturnType<typeof startGatewayOverSandbox>>;
let server: Awaited<ReturnType<typeof listen>>;
let url: string;
beforeAll(async () => {
  gateway = await startGatewayOverSandbox({ persons: 137 });
  server = await listen(gateway.gateway.handler, { host: '127.0.0.1', port: 0 });
  url = `${server.url}/graphql`;
});
afterAll(async () => {
  await server.close();
  await gateway[Symbol.asyncDispose]();
});

test("urql's relayPagination joins the pages of a list, forward", async () => {
  const client = urql.createClient(url);
  let people = await urql.loadPeople(client, { first: 60 });
  while (people.personsConnection.pageInfo.hasNextPage) {
    const { endCursor } = people.personsConnection.pageInfo;
    people = await urql.loadPeople(client, { first: 60, after: endCursor });
  }
  expect(idsOf(people)).toEqual(everybody());
});

test("urql's relayPagination joins the pages of a list, backward", async () => {
  const client = urql.createClient(url);
  let people = await urql.loadPeople(client, { last: 60 });
  while (people.personsConnection.pageInfo.hasPreviousPage) {
    const { startCursor } = people.personsConnection.pageInfo;
    people = await urql.loadPeople(client, { last: 60, before: startCursor });
  }
  expect(idsOf(people)).toEqual(everybody());
});

test.each([
  ['forward', { first: 60 }],
  ['backward', { last: 60 }],
])("Apollo Client's relayStylePagination joins the pages of a list, %s", async (_, size) => {
  const client = apollo.createClient(url);
  const watched = apollo.watchPeople(client, size);
  await firstValueFrom(watched.pipe(filter(({ loading }) => !loading)));
  const people = () => watched.getCurrentResult().data as apollo.People;
  for (;;) {
    const { hasNextPage, hasPreviousPage, endCursor, startCursor } =
      people().personsConnection.pageInfo;
    if ('first' in size ? !hasNextPage : !hasPreviousPage) break;
    const cursor = 'first' in size ? { after: endCursor } : { before: startCursor };
    await watched.fetchMore({ variables: { ...size, ...cursor } });
  }
  expect(idsOf(people())).toEqual(everybody());
  client.stop();
});

test('Apollo Client reports the code of an error', async () => {
  const client = apollo.createClient(url);
  const failing = client.query({ query: apollo.PEOPLE, variables: { after: 'damaged' } });
  const error = await failing.catch((reason: unknown) => reason);
  expect(CombinedGraphQLErrors.is(error)).toBe(true);
  expect((error as CombinedGraphQLErrors).errors[0]?.extensions?.['code']).toBe('CURSOR_INVALID');
  client.stop();
});

test('typed documents read the list page by page', async () => {
  const people: Person[] = [];
  for await (const person of readPeople(url, 60)) people.push(person);
  expect(people).toEqual(
    gateway.sandbox.persons.all().map(({ id, firstName }) => ({ id, firstName })),
  );
});

function everybody(): string[] {
  return gateway.sandbox.persons.all().map(({ id }) => id);
}

function idsOf({ personsConnection }: urql.People): string[] {
  return personsConnection.edges.map(({ node }) => node.id);
}
