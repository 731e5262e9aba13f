import type { ExecutionRequest } from '@graphql-tools/utils';
import { GraphQLError, parse, print } from 'graphql';
import { expect, test } from 'vitest';
import { graphqlToolsExecutor } from '../../src/upstream/executor.ts';
import type { OutgoingRequest, Sender } from '../../src/upstream/request.ts';
import { answer } from './held-requests.ts';

const PAGE = parse('query Page($first: Int) { persons(first: $first) { items { id } } }');

/** The executor over a service that gives the same answer to all requests. */
function executorOver(text = '{"data":{"persons":{"items":[]}}}') {
  const sent: { readonly request: OutgoingRequest; readonly sender: Sender }[] = [];
  const shared = answer(text);
  const execute = graphqlToolsExecutor(async (request, sender) => {
    sender.signal.throwIfAborted();
    sent.push({ request, sender });
    return shared;
  });
  return { sent, execute };
}

test('a document is sent with its variables and the name of its operation, and nothing of its context', async () => {
  const { sent, execute } = executorOver();
  await execute({
    document: PAGE,
    variables: { first: 1 },
    operationName: 'Page',
    context: { secret: 'of the caller' },
    extensions: { headers: { authorization: 'Bearer of the caller' } },
  });
  await execute({ document: parse('mutation { touch { id } }') });
  const [{ request, sender }, second] = sent as [(typeof sent)[0], (typeof sent)[0]];
  expect(request.kind).toBe('query');
  expect(JSON.parse(request.body)).toEqual({
    query: print(PAGE),
    operationName: 'Page',
    variables: { first: 1 },
  });
  expect(JSON.stringify(sender)).not.toContain('of the caller');
  expect(second.request.kind).toBe('mutation');
});

const FAILING = {
  message: 'This field always fails.',
  locations: [{ line: 2, column: 3 }],
  path: ['failing'],
  extensions: { code: 'ALWAYS', hint: { deep: [1] } },
};
const UNCLEAR = { message: 'The recruiting service reported an error.' };
const UNUSABLE = { extensions: { code: 'UPSTREAM_BAD_RESPONSE' } };

test.each<[string, unknown, object, object[]]>([
  [
    'with all their members',
    { data: { me: 1 }, errors: [FAILING] },
    { data: { me: 1 } },
    [FAILING],
  ],
  [
    'in no valid form',
    { data: null, errors: [null, { message: 5, path: 'x' }], extensions: { cost: 1 } },
    { data: null, extensions: { cost: 1 } },
    [UNCLEAR, UNCLEAR],
  ],
  ['of an answer that is no JSON', undefined, {}, [UNUSABLE]],
])('a request always has a result, whose errors are GraphQL errors: %s', async (...row) => {
  const [, body, members, errors] = row;
  const { execute } = executorOver(JSON.stringify(body) ?? '{"data":{"persons":oops}}');
  const { errors: read = [], ...result } = await execute({ document: PAGE });
  expect(result).toEqual(members);
  for (const error of read) expect(error).toBeInstanceOf(GraphQLError);
  expect(read.map((error) => error.toJSON())).toMatchObject(errors);
});

test.each([
  ['signal', (signal: AbortSignal) => ({ signal })],
  [
    'info, as a resolver gets it, has a signal that',
    (signal: AbortSignal) => ({ info: { signal } }),
  ],
])('a request whose %s is aborted throws the reason', async (_, madeWith) => {
  const signal = AbortSignal.abort(new Error('The caller has left.'));
  const request = { document: PAGE, ...madeWith(signal) } as ExecutionRequest;
  const result = executorOver().execute(request);
  await expect(result).rejects.toThrow('The caller has left.');
});

test('a change of one result is not seen in another one of the same answer', async () => {
  const { execute } = executorOver();
  const [first, second] = await Promise.all([PAGE, PAGE].map((document) => execute({ document })));
  Object.assign(first!.data as object, { persons: 'changed' });
  expect(second).toEqual({ data: { persons: { items: [] } } });
});

test.each([
  ['a subscription', 'subscription { hired { id } }'],
  ['a document with several operations', 'query A { a } query B { b }'],
  ['an operation that the document does not have', 'query A { a }', 'C'],
])('%s is refused, and not sent', async (_what, document, operationName?: string) => {
  const { sent, execute } = executorOver();
  const named = operationName === undefined ? {} : { operationName };
  expect(await execute({ document: parse(document), ...named })).toMatchObject({
    errors: [{ extensions: { code: 'BAD_USER_INPUT' } }],
  });
  expect(sent).toEqual([]);
});
