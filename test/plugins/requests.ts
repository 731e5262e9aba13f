import { entryFor } from '../support/gateway/api-key.ts';
import type { TestGateway, TestGatewayOptions } from '../support/gateway/gateway.ts';
import { wrote } from '../support/gateway/written.ts';

/** One request to a gateway with `settings`. */
export interface TestRequest {
  readonly name: string;
  readonly query?: string;
  readonly variables?: Record<string, unknown>;
  readonly operationName?: string;
  /** Sent instead of a body that is made of the above. */
  readonly init?: RequestInit;
  readonly address?: string;
  readonly accept?: string;
  readonly key?: string;
}

const KEY = 'rsk_of-the-portal-0123456789012345678901';
const ROUTER = 'rsk_of-the-router-0123456789012345678901';
/** Its owner may read nothing. */
export const OTHER = 'rsk_of-the-other-01234567890123456789012';
const ID = '8a57f600-1179-4434-a6be-16e91e375648';

/** Of a gateway whose callers have keys. */
export const settings: NonNullable<TestGatewayOptions['config']> = {
  auth: {
    apiKeys: [
      entryFor(KEY, 'portal', 'read', 'drain'),
      entryFor(OTHER, 'other', 'write'),
      entryFor(ROUTER, 'router', 'read', 'drain', 'router'),
    ],
    jwt: undefined,
  },
};

const CONNECTION = `query Page($count: Int!, $after: String) {
  personsConnection(first: $count, after: $after) {
    edges { cursor node { id name: firstName } } pageInfo { hasNextPage endCursor } totalCount
  }
}`;

/** Requests that are executed, and answered whole. */
export const WHOLE: readonly TestRequest[] = [
  {
    name: 'a page',
    query: '{ persons(first: 3) { items { id firstName } pageInfo { hasNextPage endCursor } } }',
  },
  { name: 'a drain', query: '{ allPersons(limit: 120) { id firstName } }' },
  { name: 'a connection', query: CONNECTION, variables: { count: 7, after: null, unused: 1 } },
  {
    name: 'references of a router',
    query: 'query ($of: [_Any!]!) { _entities(representations: $of) { ... on Person { id } } }',
    variables: { of: [{ __typename: 'Person', id: ID }] },
    key: ROUTER,
  },
  { name: 'what the gateway knows itself', query: '{ __typename _service { sdl } }', key: ROUTER },
  { name: 'introspection', query: '{ __type(name: "Person") { fields { name } } }' },
  {
    name: 'one of two operations, with a fragment and directives',
    query: `query One { allPersons(limit: 1) { id } }
      query Two($with: Boolean!) { allPersons(limit: 2) { ...Fields } }
      fragment Fields on Person { id firstName @include(if: $with) }`,
    operationName: 'Two',
    variables: { with: false },
  },
  {
    name: 'a GET request',
    address: '/graphql?query={persons(first:1){items{id}}}&variables={}',
    init: { method: 'GET' },
  },
];

/** Requests that are executed, with an error in the answer. */
export const FAILING: readonly TestRequest[] = [
  { name: 'a bad cursor', query: '{ personsConnection(first: 1, after: "x") { nodes { id } } }' },
  {
    name: 'a bad argument beside a good field',
    query: '{ persons(first: 1) { items { id } } personsConnection(first: -1) { nodes { id } } }',
  },
];

const IN_PARTS = 'multipart/mixed;deferSpec=20220824';
const PARTS = '{ allPersons(limit: 120) @stream(label: "rows", initialCount: 2) { id firstName } }';

/** Requests that are answered in parts. */
export const STREAMED: readonly TestRequest[] = [
  { name: 'a stream', query: PARTS, accept: IN_PARTS },
  {
    name: 'nothing incremental',
    query: '{ persons(first: 1) { items { id } } }',
    accept: IN_PARTS,
  },
];

/** Requests that are refused before anything is executed. */
export const REFUSED: readonly TestRequest[] = [
  { name: 'a syntax error', query: '{ persons(' },
  { name: 'an unknown field', query: '{ nope persons { items { id no } } }' },
  { name: 'a missing variable', query: CONNECTION, variables: {} },
  { name: 'no JSON', init: { method: 'POST', body: '{"query":' } },
  { name: 'no credential', query: '{ __typename }', key: '' },
  { name: 'a wrong credential', query: '{ __typename }', key: 'rsk_wrong' },
  { name: 'a missing scope', query: '{ allPersons { id } }', key: OTHER },
  { name: 'a strict refusal', query: '{ nope }', accept: 'application/graphql-response+json' },
];

/** What a caller gets, without the headers that are different for each request. */
export interface Got {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

export async function got(gateway: Pick<TestGateway, 'fetch'>, request: TestRequest): Promise<Got> {
  const response = await send(gateway, request);
  const headers = Object.fromEntries(response.headers);
  delete headers['x-request-id'];
  return { status: response.status, headers, text: wrote(await response.text()) };
}

export function send(
  gateway: Pick<TestGateway, 'fetch'>,
  { query, variables, operationName, init, address = '/graphql', accept, key = KEY }: TestRequest,
): Promise<Response> {
  const isPost = init?.method !== 'GET';
  return gateway.fetch(address, {
    method: 'POST',
    body: JSON.stringify({ query, variables, operationName }),
    ...init,
    ...(!isPost && { body: null }),
    headers: {
      accept: accept ?? 'application/json',
      ...(isPost && { 'content-type': 'application/json' }),
      ...(key !== '' && { 'x-api-key': key }),
      ...(init?.headers as Record<string, string>),
    },
  });
}
