import type { GeneratorValue } from 'fast-check';
import fc from 'fast-check';
import { collectSubFields } from '@graphql-tools/utils';
import {
  execute,
  getNamedType,
  parse,
  printSchema,
  validate,
  type GraphQLObjectType,
  type GraphQLResolveInfo,
} from 'graphql';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { codedError } from '../../src/errors.ts';
import { checkedArguments } from '../../src/paging/connection.ts';
import { decodeCursor } from '../../src/paging/cursor.ts';
import { idTypeOf, readId } from '../../src/engine/records.ts';
import type { ServedSchema } from '../../src/schema/served/served-schema.ts';
import {
  makeExecutableSchema,
  fullScalar,
  fullService,
  type FullRecord,
  type WholeList,
} from '../support/imitations/honest.ts';
import { startGatewayOverSandbox, type TestGateway } from '../support/gateway/gateway.ts';
import { startGatewayOverFake, type GatewayOverFake } from '../support/gateway/over-fake.ts';
import { honest, json, text, type Reply } from '../support/imitations/scripted.ts';
import { randomOperation } from '../support/random/random-operation.ts';
import { randomRuns, usually } from '../support/random/random-runs.ts';

type Resolvers = Parameters<typeof makeExecutableSchema>[1];

const NAMES = { limit: 'limit', last: 'last', before: 'before' };

/**
 * Without the lists whose records may not be null: an error of one record makes its page null for the gateway, and with
 * it the path of the record. `derived-lists.test.ts` has these lists.
 */
const service = () => fullService({ without: ['activeCandidates', 'applicants', 'openings'] });
const { lists, records, resolvers: ofService } = service();

type Nested = Awaited<ReturnType<typeof startGatewayOverSandbox>>;

let nested: Nested;
let costly: GatewayOverFake;
beforeAll(async () => {
  [nested, costly] = await Promise.all([startNested(), startCostly()]);
});
afterAll(async () => {
  await nested[Symbol.asyncDispose]();
  await costly[Symbol.asyncDispose]();
});

const limits = { maxAliases: 1_000, maxDepth: 100, maxTokens: 20_000 };

async function startCostly(): Promise<GatewayOverFake> {
  const { schema, sdl: snapshot } = service();
  return startGatewayOverFake({ schema }, { snapshot, config: { ...limits, mutations: 'all' } });
}

async function startNested(): Promise<Nested> {
  const { schema, sdl: snapshot } = service();
  const gateway = await startGatewayOverSandbox(
    { schema },
    { snapshot, config: { ...limits, mutations: 'all' } },
  );
  await gateway.ask('{ viewer { __typename } }');
  return gateway;
}

test('derived lists at any depth answer like a server that has all records', async () => {
  await expectSameAnswers(nested, { operations: 150, pattern: / (all|\w+Connection)/ });
}, 120_000);

test('derived lists answer so too where the service refuses what is too big, by limits that change', async () => {
  const refusals: Reply[] = [
    json({ errors: [{ message: 'Query is too complex.' }] }),
    text('Too large', 413),
  ];
  await expectSameAnswers(costly, {
    operations: 50,
    atLeast: 10,
    isComparable: hasCounts,
    isBeyondModel: isRefusedOutOfReach,
    pattern: / (all|\w+Connection)/,
    prepare: (g) => {
      const limit = g(fc.integer, { min: 1, max: 12 });
      const refuse = g(fc.constantFrom, ...refusals);
      costly.upstream.answer((...request) => {
        return (isTooBig(request[1].body, limit) ? refuse : honest)(...request);
      });
    },
  });
}, 120_000);

/** A connection without a count has a page, of any size. */
function hasCounts(query: string, variables: Readonly<Record<string, unknown>>): boolean {
  const connections = query.matchAll(/(?<!on )\b[a-z]\w*Connection\b(?:\(([^)]*)\))?/g);
  return Array.from(connections, ([, args = '']) => args).every((args) =>
    Array.from(args.matchAll(/\b(?:first|last): (?:\$(\w+)|(-?\d+))/g)).some(
      ([, variable, count]) => count !== undefined || typeof variables[variable!] === 'number',
    ),
  );
}

/** Only what the gateway adds: what callers request of the service itself is not requested in parts. */
function isTooBig(body: string, limit: number): boolean {
  const { query, variables = {} } = JSON.parse(body) as {
    query: string;
    variables?: { _rs_first?: number };
  };
  const first = query.includes('$_rs_first') ? (variables._rs_first ?? Infinity) : 0;
  const ids = query.match(/_rsRecord\d+:|_rs_parent\d+:/g)?.length ?? 0;
  return Math.max(first, ids) > limit;
}

/** The list of a parent that cannot be requested by itself. */
function isRefusedOutOfReach({ message }: { message: string }): boolean {
  return message.includes('can be reached again, and this is another one');
}

async function expectSameAnswers(
  gateway: TestGateway,
  {
    operations,
    pattern,
    atLeast = 30,
    isComparable = () => true,
    isBeyondModel = () => false,
    prepare,
  }: {
    operations: number;
    pattern: RegExp;
    atLeast?: number;
    isComparable?: typeof hasCounts;
    isBeyondModel?: typeof isRefusedOutOfReach;
    prepare?: (g: GeneratorValue) => void;
  },
): Promise<void> {
  const { served } = gateway.gateway;
  const { schema } = served;
  const model = makeExecutableSchema(printSchema(schema), modelResolvers(served));
  let matches = 0;
  await fc.assert(
    fc.asyncProperty(fc.gen(), async (g) => {
      const { query, variables } = randomOperation(schema, g, { scalar: fullScalar });
      const document = parse(query);
      fc.pre(isComparable(query, variables) && validate(model, document).length === 0);
      if (pattern.test(query)) matches += 1;
      prepare?.(g);
      const sent = query + JSON.stringify(variables);
      const expected = read(await execute({ schema: model, document, variableValues: variables }));
      const answer = read(await gateway.ask(query, variables));
      fc.pre(!answer.errors?.some((error) => hasTooManyDirectives(error) || isBeyondModel(error)));
      expect(answer.data ?? null, sent).toEqual(expected.data ?? null);
      const many = new Set([...nullsWithMany(answer), ...nullsWithMany(expected)]);
      expect(errorsByNull(answer, many), sent).toEqual(errorsByNull(expected, many));
    }),
    {
      timeout: 60_000,
      interruptAfterTimeLimit: 100_000,
      numRuns: randomRuns(operations),
      maxSkipsPerRun: 400,
    },
  );
  expect(matches).toBeGreaterThanOrEqual(usually(atLeast));
}

/** The gateway refuses them, and the model has no such limit. */
function hasTooManyDirectives({ message }: { message: string }): boolean {
  return /^The operation has \d+ directives/.test(message);
}

/** The fields that the gateway adds, answered from whole lists without pages. */
function modelResolvers({ schema, subgraphSdl, entities }: ServedSchema): Resolvers {
  const resolvers: Resolvers = {
    ...ofService,
    Query: {
      ...ofService['Query'],
      _service: () => ({ sdl: subgraphSdl() }),
      _entities: (_: unknown, args: { representations: unknown[] }) =>
        args.representations.map((representation) => recordOf(entities, representation)),
    },
  };
  for (const [type, ofType] of Object.entries(lists)) {
    const { [type]: object } = schema.getTypeMap() as Record<string, GraphQLObjectType>;
    for (const [name, list] of Object.entries(ofType)) {
      const derived = derivedOf(name, list, RENAMED[`${type}.${name}`]);
      const fields = object!.getFields();
      const served = Object.entries(derived).filter(
        ([field]) => field in fields && !(field in (ofService[type] ?? {})),
      );
      resolvers[type] = { ...resolvers[type], ...Object.fromEntries(served) };
    }
  }
  return resolvers;
}

function refused(message: string) {
  return codedError('BAD_USER_INPUT', message);
}

function recordOf(entities: ServedSchema['entities'], representation: unknown): unknown {
  if (typeof representation !== 'object' || Array.isArray(representation)) {
    return refused('A representation must be an object with `__typename` and `id`.');
  }
  const { __typename: type, id: key } = representation as { __typename?: string; id?: unknown };
  if (type === undefined) {
    return refused('This representation has no `__typename`, which names its type.');
  }
  const entity = entities.find((each) => each.type.name === type);
  if (!entity) {
    return refused(
      `There is no entity ${type} here. The SDL of this subgraph names those that there are.`,
    );
  }
  if (!entity.lookup) {
    return refused(
      `No ${entity.type.name} can be found by its id here: its key is \`resolvable: false\`. Ask another subgraph.`,
    );
  }
  if (key === undefined) {
    return refused(`This representation of a ${entity.type.name} has no \`id\`, which is its key.`);
  }
  const id = readId(key, entity);
  if (id === undefined) {
    return refused(
      `The id of a ${entity.type.name} must be of the type ${idTypeOf(entity)}, and this one is not.`,
    );
  }
  const all: FullRecord[] = [...records.vacancies, ...records.candidates];
  return all.find((each) => each.__typename === type && JSON.stringify(each.id) === id) ?? null;
}

/** The filters of these lists have the names of the gateway's arguments. */
const RENAMED: Record<string, typeof NAMES> = {
  'Query.candidates': { ...NAMES, limit: 'drainLimit' },
  'Vacancy.related': { limit: 'drainLimit', last: 'connectionLast', before: 'connectionBefore' },
};

function derivedOf(
  list: string,
  { records: recordsOf, limit: pageSize }: WholeList,
  { limit: limitName, last: lastName, before } = NAMES,
): Resolvers[string] {
  return {
    [`all${list.charAt(0).toUpperCase()}${list.slice(1)}`]: (
      parent: never,
      args: Record<string, unknown>,
    ) => {
      const limit = args[limitName];
      if (typeof limit === 'number' && limit < 0) {
        const message = `\`${limitName}\` must not be negative, but it is ${limit}.`;
        throw codedError('BAD_USER_INPUT', message);
      }
      checkCursor(args['after']);
      return limit === 0
        ? []
        : recordsOf(parent, args as never)?.slice(0, typeof limit === 'number' ? limit : undefined);
    },
    [`${list}Connection`]: (
      parent: never,
      args: Record<string, unknown>,
      _context: unknown,
      info: GraphQLResolveInfo,
    ) => {
      const counts = { first: args['first'] as number, last: args[lastName] as number };
      const { first, last } = checkedArguments(
        { name: '', max: 500, lastName },
        { ...counts, after: null, before: null },
      );
      checkCursor(args['after']);
      checkCursor(args[before]);
      let all: readonly unknown[] | null;
      try {
        all = recordsOf(parent, args as never);
      } catch (error) {
        if (!isTotalOnly(info)) throw error;
        // A list that cannot be read makes the connection null, but where only counts are selected, each of them.
        return { totalCount: () => Promise.reject(error) };
      }
      if (all === null) return null;
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

function isTotalOnly({
  schema,
  fragments,
  variableValues,
  returnType,
  fieldNodes,
}: GraphQLResolveInfo) {
  const type = getNamedType(returnType) as GraphQLObjectType;
  const variables = { coerced: variableValues, sources: {} };
  const { fields } = collectSubFields(schema, fragments, variables, type, [...fieldNodes]);
  const names = Array.from(fields.values(), ([node]) => node!.name.value);
  const fieldNames = names.filter((name) => name !== '__typename');
  return fieldNames.length > 0 && fieldNames.every((name) => name === 'totalCount');
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
