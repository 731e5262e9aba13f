import { buildSchema, GraphQLError, type ExecutionResult } from 'graphql';
import { expect, onTestFinished, test } from 'vitest';
import { setTimeout as delay } from 'node:timers/promises';
import type { Additions } from '../../src/additions/additions.ts';
import { peopleWith } from '../support/additions/people.ts';

type Fields = Record<string, unknown>;
type Result = ExecutionResult<Record<string, unknown>>;

const additions: Additions = {
  typeDefs: `extend type Person { shout: String strict: String! told: String late: String! }
    extend type Query { best: [Person] }`,
  resolvers: {
    Person: {
      shout: { selectionSet: '{ name }', resolve: ({ name }: Fields) => `${String(name)}!` },
      strict: () => {
        throw new TypeError('secret');
      },
      told: () => {
        throw new GraphQLError('Ask the owner.', { extensions: { code: 'OWN' } });
      },
      late: async () => {
        await delay(1);
        throw new Error('late');
      },
    },
    Query: {
      best: () => [{ id: '1' }, { id: 'gone' }, { id: '2' }],
    },
  },
};

/** Fails a value of everything that is delegated, at this path of the answer. */
function failing(path: (string | number)[], ...messages: string[]) {
  return (result: Result) => {
    let parent = result.data as Fields;
    for (const step of path.slice(0, -1)) parent = parent[step] as Fields;
    parent[path.at(-1)!] = null;
    const extensions = { code: 'SERVICE' };
    const errors = messages.map((message) => ({ message, path, extensions }));
    Object.assign(result, { errors: [...(result.errors ?? []), ...errors] });
  };
}

test('an error of the service keeps its words, its code and its path', async () => {
  const { ask } = peopleWith(additions, {
    alter: failing(['persons', 'items', 1, 'email'], 'No email.'),
  });
  const { data, errors } = await ask('{ persons { items { email shout } } }');
  expect(data).toMatchObject({ persons: { items: [{}, { email: null, shout: 'Name 2!' }, {}] } });
  expect(errors).toEqual([
    { message: 'No email.', path: ['persons', 'items', 1, 'email'], code: 'SERVICE' },
  ]);
});

test('the path leads to the value that failed, even if one around it is null', async () => {
  const path = ['persons', 'items', 1, 'name'];
  const { ask } = peopleWith(additions, {
    alter: (result) => {
      const errors = [{ message: 'No name.', path }];
      Object.assign(result, { data: { ...result.data, persons: null }, errors });
    },
  });
  const { data, errors } = await ask('{ x: persons { items { name shout } } }');
  expect(data).toEqual(null);
  expect(errors).toEqual([{ message: 'No name.', path: ['x', ...path.slice(1)], code: undefined }]);
});

test('several errors of one value stay several', async () => {
  const { ask } = peopleWith(additions, {
    alter: failing(['persons', 'items', 0, 'email'], 'One.', 'Two.'),
  });
  const { errors } = await ask('{ persons { items { email shout } } }');
  expect(errors.map(({ message, path }) => [message, path])).toEqual([
    ['One.', ['persons', 'items', 0, 'email']],
    ['Two.', ['persons', 'items', 0, 'email']],
  ]);
});

test.each([
  ['without a path', undefined],
  ['with the path of a value that is there', ['persons', 'items']],
])('an error %s is reported once, beside the data', async (_, path) => {
  const { ask } = peopleWith(additions, {
    alter: (result) => void Object.assign(result, { errors: [{ message: 'Slow today.', path }] }),
  });
  const { data, errors } = await ask('{ persons { items { boss { name } shout } } }');
  expect(data).toMatchObject({ persons: { items: [{ shout: 'Name 1!' }, {}, {}] } });
  expect(errors).toEqual([{ message: 'Slow today.', path: undefined, code: undefined }]);
});

test('an error without a path that several delegations report is reported once', async () => {
  const result = { data: { high: 2, low: 1 }, errors: [new GraphQLError('Slow today.')] };
  const schema = buildSchema('type Query { high: Int low: Int }');
  const { ask } = peopleWith({ subschemas: [{ schema, executor: () => result as never }] });
  expect(await ask('{ high low }')).toEqual({
    data: result.data,
    errors: [{ message: 'Slow today.', path: undefined, code: undefined }],
  });
});

test('an operation that the service refuses is an error of its field', async () => {
  const { ask } = peopleWith(additions, {
    alter: (result) => {
      Object.assign(result, {
        data: null,
        errors: [{ message: 'Not now.' }, { message: 'Sorry.' }],
      });
    },
  });
  const { data, errors } = await ask('{ x: allPersons { shout } }');
  expect(data).toEqual({ x: null });
  expect(errors.map(({ message, path }) => [message, path])).toEqual([
    ['Not now.', ['x']],
    ['Sorry.', ['x']],
  ]);
});

test('each record that is not found is null, with an error at its place', async () => {
  const { ask } = peopleWith(additions, {
    alter: (result) => {
      const errors = [{ message: 'Gone.', path: ['_entities', 1] }];
      Object.assign(result, { errors });
    },
  });
  const { data, errors } = await ask('{ a: best { x: name } }');
  expect(data).toMatchObject({ a: [{ x: 'Name 1' }, null, { x: 'Name 2' }] });
  expect(errors).toEqual([{ message: 'Gone.', path: ['a', 1], code: undefined }]);
});

test('a field whose requirement has failed has the error of the requirement', async () => {
  const { ask } = peopleWith(additions, {
    alter: failing(['persons', 'items', 0, '_rsNeeds_Person_name'], 'No name.'),
  });
  const { data, errors } = await ask('{ persons { items { shout } } }');
  expect(data).toEqual({
    persons: { items: [{ shout: null }, { shout: 'Name 2!' }, { shout: 'Name 3!' }] },
  });
  expect(errors).toMatchObject([{ message: 'No name.', path: ['persons', 'items', 0, 'shout'] }]);
});

test('a requirement whose failure nulls its record is an error at the record', async () => {
  const { ask } = peopleWith(additions, {
    alter: (result) => {
      const path = ['odd', 0, '_rsNeeds_Person_name'];
      at(['odd', 0], null)(result);
      Object.assign(result, { errors: [{ message: 'No name.', path }] });
    },
  });
  const { data, errors } = await ask('{ odd { shout } }');
  expect(data).toEqual({ odd: [null, { shout: 'Name 2!' }] });
  expect(errors).toMatchObject([{ message: 'No name.', path: ['odd', 0] }]);
});

const at = (path: (string | number)[], value: unknown) => (result: Result) => {
  let parent = result.data as Fields;
  for (const step of path.slice(0, -1)) parent = parent[step] as Fields;
  parent[path.at(-1)!] = value;
};

test.each([
  [
    'an unknown enum value',
    ['persons', 'items', 0, 'stage'],
    'FIRED',
    ['persons', 'items', 0, 'stage'],
  ],
  [
    'a string for an object',
    ['persons', 'items', 0, 'boss'],
    'me',
    ['persons', 'items', 0, 'boss'],
  ],
  [
    'a null in a list without nulls',
    ['persons', 'items', 0, 'skills', 0],
    null,
    ['persons', 'items', 0, 'skills', 0],
  ],
  [
    'a null where none is allowed',
    ['persons', 'items', 0, 'name'],
    null,
    ['persons', 'items', 0, 'name'],
  ],
  ['a string for a page', ['persons'], 'x', ['persons']],
])('%s is UPSTREAM_BAD_RESPONSE at its place', async (_, place, value, path) => {
  const { ask } = peopleWith(additions, { count: 1, alter: at(place, value) });
  const { errors } = await ask(
    '{ persons { items { stage email boss { name } skills name shout } } }',
  );
  expect(errors).toEqual([expect.objectContaining({ path, code: 'UPSTREAM_BAD_RESPONSE' })]);
});

test.each([
  ['a field that must not be null', '{ allPersons { late strict } }'],
  [
    'a record beside an error of the service',
    '{ found { ... on Person { late name } ... on Robot { name } } }',
  ],
])('the failure of %s never ends the process', async (_, query) => {
  const rejections: unknown[] = [];
  const note = (reason: unknown) => void rejections.push(reason);
  process.on('unhandledRejection', note);
  onTestFinished(() => void process.off('unhandledRejection', note));
  const { ask } = peopleWith(additions, {
    alter: (result) => result.data?.['found'] && at(['found', 1, 'name'], null)(result),
  });
  const { errors } = await ask(query);
  expect(errors.length).toBeGreaterThan(0);
  // Rejections are reported after the microtasks of the turn in which they happen.
  await delay(5);
  expect(rejections).toEqual([]);
});
