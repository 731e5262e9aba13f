import type { ExecutionRequest } from '@graphql-tools/utils';
import {
  execute,
  getVariableValues,
  GraphQLError,
  parse,
  print,
  printSchema,
  validate,
  type ExecutionResult,
  type OperationDefinitionNode,
} from 'graphql';
import { expect } from 'vitest';
import type { Additions } from '../../../src/additions/additions.ts';
import { createOperations } from '../../../src/operations/operations.ts';
import type { Plan } from '../../../src/engine/plan.ts';
import { delegateTo } from '../../../src/additions/delegate.ts';
import { withAdditions } from '../../../src/additions/with-additions.ts';
import { readConfig } from '../../../src/config.ts';
import { JsonText, type Answer, type AnswerError } from '../../../src/engine/answer.ts';
import type { Call, CallVariables } from '../../../src/engine/call.ts';
import { scopedUsesIn } from '../../../src/schema/field-scopes.ts';
import { servedOnce } from '../gateway/served-once.ts';
import { makeExecutableSchema, pageOf } from '../imitations/honest.ts';

const PEOPLE = `
  directive @tag(name: String) on QUERY | FIELD | FRAGMENT_DEFINITION | FRAGMENT_SPREAD | INLINE_FRAGMENT | VARIABLE_DEFINITION
  scalar Long
  enum Stage { NEW HIRED }
  interface Named { name: String! }
  type Person implements Named { id: ID! name: String! email: String stage: Stage! salary: Long boss: Person skills: [String!] }
  type Robot implements Named { id: Int! name: String! maker: String }
  union Found = Person | Robot
  type PersonPage { items: [Person!]! pageInfo: PageInfo! }
  type PageInfo { hasNextPage: Boolean! endCursor: String }
  type Query { persons(first: Int, after: String): PersonPage! found: [Found!]! named: [Named!]! odd: [Person] }
  type Mutation { promote(id: ID!): Person }
`;

type Fields = Readonly<Record<string, unknown>>;

/** Person `n` of the imitated service. */
export function person(id: string): Fields {
  return {
    __typename: 'Person',
    id,
    name: `Name ${id}`,
    email: `${id}@example.com`,
    stage: 'HIRED',
    salary: 1,
    boss: () => person(`${id}b`),
    skills: ['a'],
  };
}

const ROBOT = { __typename: 'Robot', id: 7, name: 'Robot', maker: 'Ours' };

interface PeopleOptions {
  /** Number of persons in the list. */
  readonly count?: number;
  /** Changes the result of each delegated operation. */
  readonly alter?: (result: ExecutionResult<Record<string, unknown>>) => void;
}

/** What a caller gets: errors as they are before unexpected ones are masked. */
interface Asked {
  readonly data: Fields | null | undefined;
  readonly errors: readonly { message: string; path?: unknown; code?: unknown }[];
}

/** A call, as far as additions use it. */
function callOf(context: object, variables: CallVariables): Call {
  const delegate = (values: CallVariables) => callOf(context, values);
  return { origin: { context }, variables, delegate } as Call;
}

/** A service of people with additions. Instead of plans, graphql-js answers what is delegated to the served schema. */
export function peopleWith(additions: Additions, { count = 3, alter }: PeopleOptions = {}) {
  const served = servedOnce(
    PEOPLE,
    readConfig({}, () => ''),
    undefined,
    true,
  );
  const all = Array.from({ length: count }, (_, i) => person(String(i + 1)));
  const service = makeExecutableSchema(printSchema(served.schema), {
    Query: {
      persons: (_: unknown, args: { first?: number }) => pageOf(all, args, 1_000),
      allPersons: () => all,
      person: (_: unknown, { id }: { id: string }) => person(id),
      found: () => [person('1'), ROBOT],
      named: () => [ROBOT, person('2')],
      odd: () => [person('1'), person('2')],
      _entities: (_: unknown, { representations }: { representations: { id: string }[] }) =>
        representations.map(({ id }) => (id === 'gone' ? null : person(id))),
    },
    Mutation: { promote: (_: unknown, { id }: { id: string }) => person(id) },
  });
  const requests: string[] = [];
  const serviceAnswer = async ({ document, variables }: ExecutionRequest): Promise<Answer> => {
    requests.push(print(document).replaceAll(/\s+/g, ' '));
    const invalid = validate(service, document);
    if (invalid.length > 0) return answerOf({ errors: invalid });
    const variableValues = variables as Fields;
    const result = await execute({ schema: service, document, variableValues });
    const copy = JSON.parse(JSON.stringify(result)) as ExecutionResult<Record<string, unknown>>;
    alter?.(copy);
    return answerOf(copy);
  };
  const delegate = delegateTo({
    schema: served.schema,
    operations: createOperations<Plan>({
      schema: served.schema,
      maxTokens: Infinity,
      maxDepth: 100,
      maxAliases: 1_000,
      introspection: true,
      allowsReservedNames: true,
      scopedUses: scopedUsesIn(served.schema, served.scopes),
      compile: ({ document }) => ({
        answer: ({ variables }) => serviceAnswer({ document, variables: variables.sent as never }),
        stream: () => undefined,
      }),
    }),
  });
  const added = withAdditions(served, additions, delegate)!;
  const planned = (query: string) => {
    const document = parse(query);
    expect(validate(added.schema, document)).toEqual([]);
    return { document, operation: document.definitions[0] as OperationDefinitionNode };
  };
  return {
    /** What was delegated to the served schema. */
    requests,
    isTouched: (query: string) => added.touches(planned(query)),
    ask: async (query: string, sent: Fields = {}): Promise<Asked> => {
      const { document, operation } = planned(query);
      expect(added.touches({ document, operation })).toBe(true);
      const definitions = operation.variableDefinitions ?? [];
      const { coerced = {} } = getVariableValues(added.schema, definitions, sent);
      const call = callOf({}, { values: coerced, sent });
      const { data, errors } = await added.plan({ document, operation }).answer(call);
      const read = data && (JSON.parse(JSON.stringify(data)) as Fields);
      return { data: read, errors: errors.map(shown) };
    },
  };
}

function answerOf({ data, errors = [] }: ExecutionResult<Record<string, unknown>>): Answer {
  return {
    data:
      data &&
      Object.fromEntries(
        Object.entries(data).map(([key, value]) => [key, JsonText.of(JSON.stringify(value))]),
      ),
    errors: errors.map(({ message, path, extensions }) => ({
      service: { message, path, extensions },
    })),
  };
}

function shown(error: AnswerError): Asked['errors'][number] {
  if ('service' in error) {
    const { message, path, extensions } = error.service;
    return { message, path, code: (extensions as Fields | undefined)?.['code'] };
  }
  const { thrown, path } = error;
  const { message } = thrown as Error;
  return {
    message,
    path,
    code: thrown instanceof GraphQLError ? thrown.extensions['code'] : undefined,
  };
}
