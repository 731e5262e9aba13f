import { delegateToSchema, type StitchingInfo } from '@graphql-tools/delegate';
import {
  OperationTypeNode,
  parse,
  visit,
  type GraphQLObjectType,
  type GraphQLResolveInfo,
} from 'graphql';
import { expect, test } from 'vitest';
import type { Additions } from '../../src/additions/additions.ts';
import { isRequirement } from '../../src/additions/requirements.ts';
import { scopedUsesIn } from '../../src/schema/field-scopes.ts';
import { onlyOperation } from '../../src/selections.ts';
import { peopleWith } from '../support/additions/people.ts';
import { reviews } from '../support/additions/reviews.ts';

const resolve = () => 'x';
const additions: Additions = {
  typeDefs: `
    extend type Person { mail: String louder: String plain: String paid: String dynamic: String }
    extend interface Named { tag: String } extend type Person { tag: String } extend type Robot { tag: String }
    extend type Query { top: Person }
  `,
  resolvers: {
    Person: {
      mail: { selectionSet: '{ email }', resolve },
      louder: { selectionSet: '{ mail }', resolve },
      plain: { selectionSet: '{ name }', resolve },
      paid: resolve,
      dynamic: {
        selectionSet: () => onlySelections('{ email }'),
        resolve,
      },
    },
    Named: { tag: { selectionSet: '{ ... on Person { email } }', resolve } },
    Query: { top: () => ({ id: '1' }) },
  },
  subschemas: [reviews()],
};

function onlySelections(text: string) {
  const document = parse(text);
  return onlyOperation(document, document.definitions[0] as never).operation.selectionSet;
}

const overrides = {
  fields: {
    'Person.email': { scope: 'pii' },
    'Person.paid': { scope: 'pay' },
    'Person.rating': { scope: 'pay' },
  },
  types: { Review: { scope: 'reviews' } },
};

const start = () => peopleWith(additions, { overrides });

function scopesOf(query: string): string[] {
  const { schema, scopes } = start();
  const document = parse(query);
  const uses = scopedUsesIn(schema, scopes)(document, document.definitions[0] as never);
  return [...new Set(uses.flatMap(({ needs }) => needs.map(({ scope }) => scope)))].toSorted();
}

test.each([
  ['a field with a scope', '{ top { email } }', ['pii']],
  ['a field that requires one', '{ persons { items { mail } } }', ['pii']],
  ['a field that requires such a field', '{ top { louder } }', ['pii']],
  ['a field whose requirement is a function', '{ top { dynamic } }', ['pii']],
  ['a field of an interface that requires one of a type', '{ named { tag } }', ['pii']],
  ['a field that adapters.json names', '{ top { paid } }', ['pay']],
  ['a field of a second service that adapters.json names', '{ top { rating } }', ['pay']],
  ['a type of a second service that adapters.json names', '{ topReviews { id } }', ['reviews']],
  ['a field that requires nothing with a scope', '{ top { plain } }', []],
])('%s needs the scopes of all that it reads', (_, query, scopes) => {
  expect(scopesOf(query)).toEqual(scopes);
});

test('the SDL of the subgraph has added fields, with their scopes', () => {
  const sdl = start().subgraphSdl();
  expect(sdl).toMatch(/mail: String @requiresScopes\(scopes: \[\["pii"\]\]\)/);
  expect(sdl).toMatch(/paid: String @requiresScopes\(scopes: \[\["pay"\]\]\)/);
  expect(sdl).toMatch(/plain: String\n/);
  expect(sdl).toMatch(/type Person implements Named @key\(fields: "id"\)/);
});

test('what additions require is told apart from what resolvers delegate', async () => {
  const { ask, requests } = start();
  await ask('{ persons { items { email mail } } }');
  const required: string[] = [];
  const selected: string[] = [];
  visit(parse(requests[0]!), {
    Field: (node) => void (isRequirement(node) ? required : selected).push(node.name.value),
  });
  expect(required).toContain('email');
  expect(selected.filter((name) => name === 'email')).toHaveLength(1);
});

test('an entry of adapters.json for what nobody has is refused', () => {
  const misspelled = { fields: { 'Person.payed': { scope: 'pay' } } };
  expect(() => peopleWith(additions, { overrides: misspelled })).toThrow('payed');
});

const delegating = (context?: object): Additions => ({
  typeDefs: 'extend type Query { mailOf(id: ID!): String promoted: String }',
  resolvers: {
    Query: {
      mailOf: (_: unknown, { id }: { id: string }, given: object, info) =>
        delegated(context ?? given, info, OperationTypeNode.QUERY, 'person', id),
      promoted: (_: unknown, __: unknown, given: object, info) =>
        delegated(given, info, OperationTypeNode.MUTATION, 'promote', '1'),
    },
  },
});

async function delegated(
  context: object,
  info: GraphQLResolveInfo,
  operation: OperationTypeNode,
  fieldName: string,
  id: string,
): Promise<unknown> {
  const { stitchingInfo } = info.schema.extensions as unknown as { stitchingInfo: StitchingInfo };
  const [schema] = stitchingInfo.subschemaMap.keys();
  const returnType = info.schema.getType('Person') as GraphQLObjectType;
  const selectionSet = onlySelections('{ email }');
  const args = { id };
  const options = { operation, fieldName, args, context, info, selectionSet, returnType };
  const record: unknown = await delegateToSchema({ schema: schema!, ...options });
  if (record instanceof Error) throw record;
  return (record as { email: string }).email;
}

test.each([
  ['all scopes', '{ mailOf(id: "2") promoted }', ['read', 'write', 'pii'], []],
  ['no scope of a field', '{ mailOf(id: "2") }', ['read'], ['FORBIDDEN']],
  ['no scope for mutations', '{ promoted }', ['read', 'pii'], ['FORBIDDEN']],
])(
  'what a resolver delegates has the scopes of its caller: %s',
  async (_, query, scopes, codes) => {
    const { ask } = peopleWith(delegating(), {
      overrides: { fields: { 'Person.email': { scope: 'pii' } } },
    });
    const { errors } = await ask(query, {}, {}, new Set(scopes));
    expect(errors.map(({ code }) => code)).toEqual(codes);
  },
);

test('what a resolver delegates without the context of the request is refused', async () => {
  const { ask, requests } = peopleWith(delegating({}));
  const { data, errors } = await ask('{ mailOf(id: "2") }');
  expect(data).toEqual({ mailOf: null });
  expect(errors).toMatchObject([{ code: 'UNAUTHENTICATED', path: ['mailOf'] }]);
  expect(requests).toEqual([]);
});
