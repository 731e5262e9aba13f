import { GraphQLError, parse, print, type DocumentNode, type ExecutionResult } from 'graphql';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { IN_PARTS } from '../support/clients/multipart.ts';
import { startFront, type Front } from '../support/gateway/front.ts';
import { everyHook } from '../support/gateway/every-hook.ts';
import { CONFIG, got, READER, ROUTER, STREAM, WRITER } from './gateway.ts';

// What the hooks of plugins are given. That no hook changes an answer is in http/every-way.test.ts.

/** What the hooks were given for one request, under their names. */
const given = new Map<string, unknown[]>();
let gateway: Front;
beforeAll(async () => {
  const config = { ...CONFIG, introspection: true };
  gateway = await startFront({}, { config, plugins: [everyHook(keep)] });
});
afterAll(() => gateway[Symbol.asyncDispose]());

/** Keeps copies, as plugins make them. */
function keep(hook: string, value: unknown): void {
  const copy = { ...(value as object) } as { result?: unknown };
  const { result } = copy;
  if (hook === 'onExecuteDone') {
    copy.result = { ...(result as object) };
  }
  given.set(hook, [...(given.get(hook) ?? []), copy]);
}

const first = (hook: string) => given.get(hook)![0];
const resultsOf = (hook: string) =>
  (given.get(hook) ?? []).map((value) => (value as { result: unknown }).result);

/** Sends an operation, and returns the answer and the hooks that were called. */
async function send(query: string, sent: Parameters<typeof got>[2] = {}) {
  given.clear();
  const answer = await got(gateway, query, { key: ROUTER, ...sent });
  expect(first('onResponse')).toMatchObject({ response: { status: answer.status } });
  return { ...answer, hooks: [...given.keys()] };
}

const BEFORE =
  'onRequest,onRequestParse,onRequestParseDone,onParams,onEnveloped,onParse,onParseDone,onValidate,onValidateDone,' +
  'onContextBuilding,onContextBuildingDone,onExecute';
const AFTER = ['onExecuteDone', 'onExecutionResult', 'onResultProcess', 'onResponse'];
const ENTITIES = 'query ($of: [_Any!]!) { _entities(representations: $of) { __typename } }';
const TWO = `query One { __typename }
  query Two($with: Boolean!) { allPersons(limit: 2) { ...Fields } }
  fragment Fields on Person { id firstName @include(if: $with) }`;
const CONNECTION = 'query ($count: Int!) { personsConnection(first: $count) { totalCount } }';

test.each<
  [string, query: string, sent?: { operationName?: string; variables?: object; accept?: string }]
>([
  ['a page', '{ persons(first: 3) { items { id } pageInfo { endCursor } } }'],
  ['a drain', '{ allPersons(limit: 120) { id } }'],
  ['a connection', CONNECTION, { variables: { count: 7 } }],
  ['references', ENTITIES, { variables: { of: [{ __typename: 'Person', id: '1' }] } }],
  ['what the gateway knows itself', '{ __typename __schema { __typename } }'],
  ['one of two operations', TWO, { operationName: 'Two', variables: { with: false } }],
  ['an error', '{ personsConnection(after: "x") { nodes { id } } __typename }'],
  ['a stream, which is whole for them', STREAM, { accept: IN_PARTS }],
])('each hook is called once for %s, with true values', async (_, query, sent = {}) => {
  const { hooks: once, text } = await send(query, sent);
  expect(once.slice(0, -AFTER.length).toSorted()).toEqual(BEFORE.split(',').toSorted());
  expect(once.slice(-AFTER.length)).toEqual(AFTER);
  for (const hook of once) expect([hook, given.get(hook)!.length]).toEqual([hook, 1]);

  const { args } = first('onExecute') as {
    args: { document: DocumentNode; operationName?: string; variableValues: object };
  };
  expect(first('onParams')).toMatchObject({ params: { query } });
  expect(print(args.document)).toBe(print(parse(query)));
  expect(args).toMatchObject({
    operationName: sent.operationName,
    variableValues: sent.variables,
  });
  expect(first('onParseDone')).toMatchObject({ result: args.document });
  expect(first('onValidateDone')).toMatchObject({ valid: true });

  const results = resultsOf('onExecuteDone') as ExecutionResult[];
  expect(JSON.parse(JSON.stringify(results))).toEqual([JSON.parse(text)]);
  // A plugin that reports the errors of resolvers, which have another `originalError`, does not take these for its own.
  for (const error of results.flatMap(({ errors = [] }) => errors)) {
    expect(error).toBeInstanceOf(GraphQLError);
    const { originalError } = error;
    expect(originalError === undefined || originalError instanceof GraphQLError).toBe(true);
  }
});

test.each<[string, query: string, last: string, key?: string]>([
  ['a syntax error', '{ persons(', 'onParseDone'],
  ['an unknown field', '{ nope persons { items { id no } } }', 'onValidateDone'],
  ['a missing variable', ENTITIES, 'onContextBuildingDone'],
  ['a missing scope', '{ allPersons { id } }', 'onValidateDone', WRITER],
  ['a wrong credential', '{ __typename }', '', 'wrong'],
])('hooks see why %s is refused, and no result', async (name, query, last, key = READER) => {
  const { text, hooks } = await send(query, { key });
  expect(hooks).not.toContain('onExecuteDone');
  expect(hooks.includes('onRequest')).toBe(last !== '');
  const { errors } = JSON.parse(text) as { errors: object[] };
  if (name === 'a syntax error') expect(resultsOf(last)[0]).toBeInstanceOf(GraphQLError);
  if (name === 'an unknown field') {
    const { valid, result } = first(last) as { valid: boolean; result: unknown[] };
    expect([valid, result.length, errors.length]).toEqual([false, 2, 2]);
    expect(result[0]).toBeInstanceOf(GraphQLError);
    const { params } = first('onValidate') as { params: { documentAST: DocumentNode } };
    expect(print(params.documentAST)).toContain('nope');
  }
});
