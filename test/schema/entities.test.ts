import { GraphQLError, type GraphQLScalarType } from 'graphql';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import {
  startGatewayOverService,
  startOverFullService,
  type GatewayOverService,
} from '../support/gateway/over-service.ts';
import { makeExecutableSchema, type PageArgs, pageOf, range } from '../service/lists.ts';
import { honest, json } from '../service/replies.ts';

let full: GatewayOverService;
beforeAll(async () => {
  full = await startOverFullService();
});
afterAll(() => full[Symbol.asyncDispose]());

let counted = 0;
beforeEach(() => {
  counted = full.service.received.length;
});

/** The variables of each request since the test began. */
function requests(): Record<string, unknown>[] {
  return full.service.received
    .slice(counted)
    .map(({ body }) => (JSON.parse(body) as { variables: Record<string, unknown> }).variables);
}

function entities(
  { ask }: GatewayOverService,
  selection: string,
  representations: readonly unknown[],
) {
  return ask<{ _entities: unknown[] }>(
    `query ($of: [_Any!]!) { _entities(representations: $of) { ${selection} } }`,
    { of: representations },
  );
}

const ref = (type: string) => (id: unknown) => ({ __typename: type, id });
const candidate = ref('Candidate');
const vacancy = ref('Vacancy');
const job = ref('Job');

test('representations cost one request for each 50 different ids with one selection, in one field or several, and keep their order', async () => {
  const known = range(37);
  // Another subgraph may write ids as text.
  const all = [...known, ...known.toReversed().map(String), ...range(70).map((id) => id + 999)];
  const { data, errors } = await full.ask(
    `query ($a: [_Any!]!, $b: [_Any!]!) {
      a: _entities(representations: $a) { ...Id }
      b: _entities(representations: $b) { ...Id }
      other: _entities(representations: $b) { ... on Candidate { stage } ... on Named { name } }
      nothing: _entities(representations: $b) { ... on Vacancy { id } }
    }
    fragment Id on Candidate { id }`,
    { a: all.map(candidate), b: [3, 2, 900, 41].map(candidate) },
  );
  expect(errors).toBeUndefined();
  const stage = { stage: expect.any(String), name: expect.any(String) };
  expect(data).toEqual({
    a: all.map((id) => (Number(id) < 100 ? { id: Number(id) } : null)),
    b: [{ id: 3 }, { id: 2 }, null, { id: 41 }],
    other: [stage, stage, null, stage],
    nothing: [{}, {}, null, {}],
  });
  const sizes = requests().map((variables) => Object.keys(variables).length);
  expect(sizes.toSorted((a, b) => b - a)).toEqual([50, 50, 9, 4, 4]);
});

test('fields of one operation that select different nested lists of records get their own', async () => {
  const { data } = await full.ask(
    `query ($of: [_Any!]!) {
      a: _entities(representations: $of) { ... on Vacancy { allCandidates(limit: 1) { id } } }
      b: _entities(representations: $of) { ... on Vacancy { allCandidates(limit: 2) { stage } } }
    }`,
    { of: [vacancy(2)] },
  );
  const stage = { stage: expect.any(String) };
  expect(data).toEqual({
    a: [{ allCandidates: [{ id: expect.any(Number) }] }],
    b: [{ allCandidates: [stage, stage] }],
  });
});

const NO_REFERENCE = /must be an object with the `__typename` of an entity here, and its `id`/;
const BAD: readonly [representation: unknown, message: RegExp][] = [
  [{ id: 1 }, NO_REFERENCE],
  [{ __typename: 'Vacancy' }, NO_REFERENCE],
  [{ __typename: 'Invoice', id: 1 }, NO_REFERENCE],
  [{ __typename: 'Event', id: 1 }, NO_REFERENCE],
  [{ __typename: 'Company', id: 'c1' }, /resolvable: false/],
  [vacancy('x'), /must be of the type Int/],
  [vacancy('12 or so'), /must be of the type Int/],
  [vacancy(''), /must be of the type Int/],
  [vacancy(2 ** 40), /must be of the type Int/],
  ['Vacancy:1', NO_REFERENCE],
  [{ __typename: '<b>'.repeat(99), id: 1 }, NO_REFERENCE],
  [{ __typename: '__proto__', id: 1 }, NO_REFERENCE],
];

test('each bad representation has its own error, and the others are answered, in one request', async () => {
  const all = [vacancy(1), ...BAD.map(([representation]) => representation), vacancy(2)];
  const { data, errors } = await entities(full, '... on Vacancy { id }', all);
  expect(data._entities).toEqual([{ id: 1 }, ...BAD.map(() => null), { id: 2 }]);
  expect(errors).toEqual(
    BAD.map(([, message], index) => ({
      message: expect.stringMatching(message),
      path: ['_entities', 1 + index],
      extensions: { code: 'BAD_USER_INPUT' },
    })),
  );
  expect(requests()).toHaveLength(1);
  const { errors: ofNull } = await entities(full, '__typename', [null]);
  expect(ofNull).toMatchObject([{ extensions: { code: 'BAD_USER_INPUT' } }]);
});

test('more than 10,000 in one operation are refused in one error', async () => {
  const { data, errors } = await full.ask(
    `query ($all: [_Any!]!) {
      a: _entities(representations: $all) { __typename }
      b: _entities(representations: $all) { __typename }
    }`,
    { all: range(5_001).map(candidate) },
  );
  expect(data).toBeNull();
  expect(errors).toMatchObject([{ extensions: { code: 'OPERATION_TOO_COMPLEX' } }]);
});

const JOBS = `
  scalar Code
  type Job { id: Code! title: String! }
  type Query { job(id: Code!): Job! }
`;

const existing = (id: unknown) => {
  if (id === 'gone') throw new GraphQLError('There is no such job.');
  return id;
};

test.each<[string, (id: unknown) => unknown, (id: unknown) => unknown]>([
  ['while it is executed', (id) => id, existing],
  ['before it is executed', existing, (id) => id],
])(
  'when one id fails the whole request %s, the other ids are requested singly and answered',
  async (_, read, find) => {
    const schema = makeExecutableSchema(JOBS, {
      Query: {
        job: (_root: unknown, { id }: { id: string }) => ({ id: find(id), title: `Job ${id}` }),
      },
    });
    (schema.getType('Code') as GraphQLScalarType).parseValue = read;
    const config = { pagesPerMinute: 1 };
    await using gateway = await startGatewayOverService({ schema }, { snapshot: JOBS, config });
    const { received } = gateway.service;
    const before = received.length;
    const ids = ['a', 'b', 'gone', 'c'];
    const { data, errors } = await entities(gateway, '... on Job { id title }', ids.map(job));
    expect(data._entities).toEqual([
      { id: 'a', title: 'Job a' },
      { id: 'b', title: 'Job b' },
      null,
      { id: 'c', title: 'Job c' },
    ]);
    const message = expect.stringContaining('There is no such job.') as string;
    expect(errors).toMatchObject([{ message, path: ['_entities', 2] }]);
    // One request for all, which costs a page, and then one for each.
    expect(received.length - before).toBe(5);
  },
);

test.each([
  ['String', 12, '12'],
  ['Int', '12', 12],
])('an id is sent as the %s that the service takes', async (type, id, sent) => {
  const snapshot = JOBS.replace('job(id: Code!)', `job(id: ${type}!)`);
  const schema = makeExecutableSchema(snapshot, {
    Query: { job: (_: unknown, { id: of }) => ({ id: of }) },
  });
  const overrides = { types: { Job: { byId: 'job' } } };
  await using gateway = await startGatewayOverService({ schema }, { snapshot, overrides });
  const { data } = await entities(gateway, '... on Job { id }', [job(id)]);
  expect(data._entities).toEqual([{ id: sent }]);
});

test('when ids are requested singly, a request that fails costs its own record only', async () => {
  const schema = makeExecutableSchema(JOBS, { Query: { job: (_: unknown, { id }) => ({ id }) } });
  await using gateway = await startGatewayOverService({ schema }, { snapshot: JOBS });
  const odd = json({ errors: [{ message: 'Odd.' }] });
  gateway.service.answer(odd, honest, json('no GraphQL', 400));
  const { data, errors } = await entities(gateway, '... on Job { id }', ['a', 'b'].map(job));
  expect(data._entities).toEqual([{ id: 'a' }, null]);
  const extensions = { code: 'UPSTREAM_BAD_RESPONSE' };
  expect(errors).toMatchObject([{ extensions, path: ['_entities', 1] }]);
});

test('when a request is refused whatever its ids, they are not requested singly', async () => {
  await using gateway = await startGatewayOverService({}, { snapshot: JOBS });
  gateway.service.answer(json({ errors: [{ message: 'There is no field job.' }] }));
  const before = gateway.service.received.length;
  const ids = range(100).map(String);
  const { errors } = await entities(gateway, '... on Job { id }', ids.map(job));
  const message = 'There is no field job.';
  expect(errors).toMatchObject(ids.map((_, at) => ({ message, path: ['_entities', at] })));
  // For each 50: one request for all, and two single ones.
  expect(gateway.service.received.length - before).toBe(6);
});

test('a null without an error of its own in place of a record is reported as failed, at its place', async () => {
  await using gateway = await startGatewayOverService({}, { snapshot: JOBS });
  const data = { _rsRecord0: null, _rsRecord1: { id: 'b' }, _rsRecord2: null };
  gateway.service.answer(json({ data, errors: [{ message: 'The database is down.' }] }));
  const answer = await entities(gateway, '... on Job { id }', ['a', 'b', 'c'].map(job));
  expect(answer.data._entities).toEqual([null, { id: 'b' }, null]);
  expect(answer.errors).toMatchObject([0, 2].map((at) => ({ path: ['_entities', at] })));
});

/** Records that can only be found in a list, whose `rank` may fail. */
async function startListed(fails: (id: number) => boolean, items: string) {
  const snapshot = `
    scalar Code
    type Job { id: Code! rank: Int! }
    type JobPage { items: ${items} pageInfo: PageInfo! }
    type PageInfo { hasNextPage: Boolean! endCursor: String }
    type Query { jobs(first: Int, after: String): JobPage! }`;
  const jobs = range(120).map((id) => ({ id }));
  const schema = makeExecutableSchema(snapshot, {
    Query: { jobs: (_: unknown, args: PageArgs) => pageOf(jobs, args) },
    Job: {
      rank: ({ id }: { id: number }) => {
        if (fails(id)) throw new Error(`No rank for ${id}.`);
        return id;
      },
    },
  });
  return await startGatewayOverService({ schema }, { snapshot });
}

test('a record of a list that is null because a field in it failed has the error of that field', async () => {
  await using gateway = await startListed((id) => id === 3 || id === 70, '[Job]!');
  for (let round = 0; round < 2; round += 1) {
    const { data, errors } = await entities(
      gateway,
      '... on Job { id rank }',
      [2, 3, 70, 71].map(job),
    );
    expect(data._entities).toEqual([{ id: 2, rank: 2 }, null, null, { id: 71, rank: 71 }]);
    expect(errors).toMatchObject([
      { message: 'No rank for 3.', path: ['_entities', 1, 'rank'] },
      { message: 'No rank for 70.', path: ['_entities', 2, 'rank'] },
    ]);
  }
});

test('when a field fails for all records of a list, each has the error, and the list is not read again for each', async () => {
  await using gateway = await startListed(() => true, '[Job!]!');
  await gateway.ask('{ allJobs { id } }');
  const { received } = gateway.service;
  const before = received.length;
  const ids = range(120);
  const { data, errors = [] } = await entities(gateway, '... on Job { id rank }', ids.map(job));
  expect(data._entities).toEqual(ids.map(() => null));
  const messages = errors.map(({ message }) => message);
  expect(messages).toEqual(ids.map(() => expect.stringMatching(/^No rank for \d+\.$/)));
  expect(received.length - before).toBeLessThan(10);
});
