import fc from 'fast-check';
import { execute, parse, printSchema, validate } from 'graphql';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { codedError } from '../../src/errors.ts';
import { checkedCount, checkedCounts } from '../../src/paging/connection/connection-arguments.ts';
import { decodeCursor } from '../../src/paging/cursor.ts';
import { readRepresentation } from '../../src/plans/records/entities-field.ts';
import { makeExecutableSchema } from '../support/imitations/executable-schema.ts';
import { startGatewayOverSandbox } from '../support/gateway/gateway.ts';
import {
  fieldsOfRecords,
  LIMITS,
  nestedScalar,
  nestedSdl,
  nestedUpstream,
  pagedFields,
  rootFields,
  whole,
} from '../support/imitations/nested-upstream.ts';
import { randomOperation } from '../support/random/random-operation.ts';
import { randomRuns } from '../support/random/random-runs.ts';

type Resolvers = Parameters<typeof makeExecutableSchema>[1];

let nested: Awaited<ReturnType<typeof startGatewayOverSandbox>>;
beforeAll(async () => {
  nested = await startGatewayOverSandbox(
    { schema: nestedUpstream() },
    { snapshot: nestedSdl, config: { maxAliases: 1_000, maxDepth: 100, maxTokens: 20_000 } },
  );
  await nested.ask('{ viewer { __typename } }');
});
afterAll(() => nested[Symbol.asyncDispose]());

test('derived lists at any depth answer like a server that has all records', async () => {
  const { schema } = nested.gateway.served;
  const model = makeExecutableSchema(printSchema(schema), modelResolvers());
  let derived = 0;
  await fc.assert(
    fc.asyncProperty(fc.gen(), async (g) => {
      const { query, variables } = randomOperation(schema, g, { scalar: nestedScalar });
      const document = parse(query);
      fc.pre(validate(model, document).length === 0);
      if (/ (all|\w+Connection)/.test(query)) derived += 1;
      const told = query + JSON.stringify(variables);
      const expected = read(await execute({ schema: model, document, variableValues: variables }));
      const answer = read(await nested.ask(query, variables));
      // The gateway refuses too many directives, and the model has no such limit.
      fc.pre(
        !answer.errors?.some(({ message }) => /^The operation has \d+ directives/.test(message)),
      );
      expect(answer.data ?? null, told).toEqual(expected.data ?? null);
      const many = new Set([...nullsWithMany(answer), ...nullsWithMany(expected)]);
      expect(errorsByNull(answer, many), told).toEqual(errorsByNull(expected, many));
    }),
    {
      timeout: 20_000,
      interruptAfterTimeLimit: 100_000,
      numRuns: randomRuns(150),
      maxSkipsPerRun: 400,
    },
  );
  expect(derived).toBeGreaterThan(50);
}, 120_000);

/** The derived fields, answered from whole lists without pages. */
function modelResolvers(): Resolvers {
  return {
    ...fieldsOfRecords,
    ...pagedFields,
    Query: {
      ...rootFields,
      ...pagedFields.Query,
      ...derivedOf('vacancies', whole.vacancies, LIMITS.vacancies),
      ...derivedOf('named', whole.named, 10),
      _service: () => ({ sdl: nested.gateway.served.subgraphSdl() }),
      _entities: (_: unknown, args: { representations: unknown[] }) =>
        args.representations.map(entityOf),
    },
    Vacancy: {
      ...fieldsOfRecords.Vacancy,
      ...pagedFields.Vacancy,
      ...derivedOf('candidates', whole.candidates, LIMITS.candidates),
      ...derivedOf('applicants', whole.applicants, LIMITS.applicants),
      ...derivedOf('related', whole.related, LIMITS.related, RENAMED),
      ...derivedOf('fragile', whole.fragile, LIMITS.events),
    },
    Candidate: {
      ...fieldsOfRecords.Candidate,
      ...pagedFields.Candidate,
      ...derivedOf('history', whole.history, LIMITS.events),
    },
    Company: {
      ...fieldsOfRecords.Company,
      ...pagedFields.Company,
      ...derivedOf('people', whole.people, LIMITS.candidates),
    },
    Settings: {
      ...pagedFields.Settings,
      ...derivedOf('events', whole.settings, LIMITS.events),
    },
  };
}

function entityOf(representation: unknown): unknown {
  const { entities } = nested.gateway.served;
  const byName = new Map(entities.map((entity) => [entity.type.name, entity]));
  try {
    const referred = readRepresentation(representation, byName);
    if (typeof referred === 'string') return codedError('BAD_USER_INPUT', referred);
    const { entity, id } = referred;
    const all = whole.named().map((record) => ({ ...record }));
    return all.find((each) => each.__typename === entity.type.name && each.id === id) ?? null;
  } catch (error) {
    return error;
  }
}

/** This list has filters with the names of our arguments. */
const RENAMED = { limit: 'drainLimit', last: 'connectionLast', before: 'connectionBefore' };

function derivedOf(
  list: string,
  records: (parent: never, args: never) => readonly unknown[],
  pageSize: number,
  { limit: limitName, last: lastName, before } = { limit: 'limit', last: 'last', before: 'before' },
): Resolvers[string] {
  return {
    [`all${list.charAt(0).toUpperCase()}${list.slice(1)}`]: (
      parent: never,
      args: Record<string, unknown>,
    ) => {
      const limit = args[limitName];
      if (typeof limit === 'number') checkedCount(limitName, limit);
      checkCursor(args['after']);
      return limit === 0
        ? []
        : records(parent, args as never).slice(0, typeof limit === 'number' ? limit : undefined);
    },
    [`${list}Connection`]: (parent: never, args: Record<string, unknown>) => {
      const { first, last } = checkedCounts(args['first'], args[lastName], {
        max: 500,
        lastName,
      });
      checkCursor(args['after']);
      checkCursor(args[before]);
      const all = records(parent, args as never);
      const nodes =
        last === undefined
          ? all.slice(0, first ?? pageSize)
          : all.slice(Math.max(0, all.length - last));
      const isCut = nodes.length < all.length;
      return {
        edges: nodes.map((node) => ({ node, cursor: CURSOR })),
        nodes,
        pageInfo: {
          hasNextPage: last === undefined && isCut,
          hasPreviousPage: last !== undefined && isCut,
          startCursor: nodes.length > 0 ? CURSOR : null,
          endCursor: nodes.length > 0 ? CURSOR : null,
        },
        totalCount: all.length,
      };
    },
  };
}

function checkCursor(after: unknown): void {
  if (typeof after === 'string') decodeCursor('', after);
}

const CURSOR = 'a cursor of ours';

/** Replaces cursors, which are opaque. */
function read(answer: object) {
  return JSON.parse(
    JSON.stringify(answer).replaceAll(/"AQ?[\w-]{40,}"/g, JSON.stringify(CURSOR)),
  ) as Answer;
}

interface Answer {
  data?: unknown;
  errors?: { message: string; path: (string | number)[]; extensions?: object }[];
}

/**
 * The errors, by the path of the null to which each belongs. A server may report any of several errors of one null
 * (specification, 6.4.4), so only one of them is kept.
 */
function errorsByNull({ data, errors = [] }: Answer, many: ReadonlySet<string>) {
  const byNull = Map.groupBy(errors, ({ path }) => nullOn(data, path));
  return Object.fromEntries(
    [...byNull].map(([place, [error]]) => [
      place,
      many.has(place)
        ? 'several'
        : { ...error, extensions: error!.extensions ?? {}, locations: [] },
    ]),
  );
}

function nullsWithMany({ data, errors = [] }: Answer): string[] {
  const places = errors.map(({ path }) => nullOn(data, path));
  return places.filter((place, index) => places.indexOf(place) !== index);
}

function nullOn(data: unknown, path: readonly (string | number)[]): string {
  let value = data;
  const steps = path.findIndex((step) => {
    if (value === null || value === undefined) return true;
    value = (value as Record<string, unknown>)[step];
    return false;
  });
  return JSON.stringify(steps < 0 ? path : path.slice(0, steps));
}
