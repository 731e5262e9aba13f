import {
  buildSchema,
  getNullableType,
  getOperationAST,
  GraphQLError,
  isAbstractType,
  isObjectType,
  parse,
  printSchema,
  type FieldNode,
  type GraphQLFieldResolver,
  type GraphQLResolveInfo,
  type GraphQLSchema,
} from 'graphql';
import {
  LARGEST_PAGE,
  type Adapter,
  type Entity,
  type PagedField,
  type Result,
} from '../../src/schema/derived.ts';
import type { ServedSchema } from '../../src/schema/served/served-schema.ts';

type Resolver = GraphQLFieldResolver<unknown, unknown, Record<string, unknown>>;
type Args = Readonly<Record<string, unknown>>;
type Typed = { readonly __typename?: string; readonly id?: string | number };

/**
 * Answers every operation of the served schema without the gateway: with the service's own resolvers, and with lists
 * that are whole in memory.
 */
export function createOracle(service: GraphQLSchema, served: ServedSchema): GraphQLSchema {
  const schema = buildSchema(printSchema(served.schema), { assumeValidSDL: true });
  const root = schema.getQueryType()!;
  const types = Object.values(schema.getTypeMap());
  const servedNames = new Map(types.map(({ name }) => [served.upstreamType(name), name]));
  const servedName = (value: unknown) => servedNames.get((value as Typed).__typename!);
  const wholeLists = new Map<string, Promise<unknown[] | null>>();
  for (const type of types) {
    if (isAbstractType(type)) type.resolveType = servedName;
    if (!isObjectType(type) || type.name.startsWith('__')) continue;
    for (const field of Object.values(type.getFields())) {
      const derived = served.derived.find(
        ({ parent, name }) => parent === type.name && name === field.name,
      );
      field.resolve = (derived ? resolverOf(derived) : ofService(type.name, field.name)) as never;
    }
  }
  return schema;

  function resolverOf(field: ServedSchema['derived'][number]): Resolver {
    return (source, args, _, info) => {
      switch (field.kind) {
        case 'all':
          return drain(field.adapter, source, args, info);
        case 'connection':
          return connection(field.adapter, source, args, info);
        case 'record':
          return record(field.entity, args['id']);
        case 'entities':
          return (args['representations'] as unknown[]).map(entity);
        case 'service':
          return undefined;
      }
    };
  }

  async function drain(adapter: Adapter, source: unknown, args: Args, info: GraphQLResolveInfo) {
    const most = args['limit'] as number | null | undefined;
    if (typeof most === 'number' && most < 0) throw refusal('BAD_USER_INPUT');
    const start = placeOf(adapter, args['after']) ?? 0;
    if (most === 0) return [];
    const list = await wholeList(adapter, source, args, info);
    return list && list.slice(start, start + (most ?? list.length));
  }

  /** Relay's cursor connections specification, 4.4: "Pagination algorithm". */
  async function connection(
    adapter: Adapter,
    source: unknown,
    args: Args,
    info: GraphQLResolveInfo,
  ) {
    const [first, last] = [args['first'], args['last']] as (number | null | undefined)[];
    if (typeof first === 'number' && typeof last === 'number') throw refusal('BAD_USER_INPUT');
    if ((first ?? 0) < 0 || (last ?? 0) < 0) throw refusal('BAD_USER_INPUT');
    const after = placeOf(adapter, args['after']);
    const before = placeOf(adapter, args['before']);
    const records = await wholeList(adapter, source, args, info);
    if (!records) return null;
    const isPage = typeof first !== 'number' && typeof last !== 'number';
    const most = isPage ? await pageLimit(adapter, source, args, info) : (first ?? Infinity);
    let start = after ?? 0;
    let end = before !== undefined && before > start ? before - 1 : records.length;
    const count = end - start;
    end = Math.min(end, start + most);
    if (typeof last === 'number') start = Math.max(start, end - last);
    const edges = records
      .slice(start, end)
      .map((node, index) => ({ node, cursor: cursorAt(adapter, start + index + 1) }));
    return {
      edges,
      nodes: edges.map(({ node }) => node),
      totalCount: records.length,
      pageInfo: {
        startCursor: edges.at(0)?.cursor ?? null,
        endCursor: edges.at(-1)?.cursor ?? null,
        hasNextPage: count > most || (typeof first !== 'number' && before !== undefined),
        hasPreviousPage: typeof last === 'number' ? count > last : after !== undefined,
      },
    };
  }

  /** How many records the service gives for the largest page that the gateway asks for, whatever it gives by itself. */
  async function pageLimit(
    adapter: Adapter,
    source: unknown,
    args: Args,
    info: GraphQLResolveInfo,
  ) {
    const largest = { ...filtersIn(adapter, args), [adapter.first.name]: LARGEST_PAGE };
    const { items } = await page(adapter, source, largest, info);
    return (items as unknown[]).length;
  }

  async function wholeList(
    adapter: Adapter,
    source: unknown,
    args: Args,
    info?: GraphQLResolveInfo,
  ) {
    const filters = filtersIn(adapter, args);
    const read = async () => {
      const all: unknown[] = [];
      for (let after: unknown = null; ;) {
        const { items, pageInfo } = await page(
          adapter,
          source,
          { ...filters, [adapter.first.name]: 1_000, [adapter.after.name]: after },
          info!,
        );
        if (items === undefined) return null;
        all.push(...((items as unknown[] | null) ?? []));
        if (!pageInfo.hasNextPage) return all;
        after = pageInfo.endCursor;
      }
    };
    if (adapter.parent !== root.name) return read();
    const key = adapter.name + JSON.stringify(filters);
    const known = wholeLists.get(key) ?? read();
    wholeLists.set(key, known);
    return known;
  }

  async function page(adapter: Adapter, source: unknown, args: Args, info: GraphQLResolveInfo) {
    const value = await ofService(adapter.parent, adapter.name)(source, args, {}, info);
    const given = successOf(adapter.result, value);
    return (given ?? {}) as {
      items?: unknown;
      pageInfo: { hasNextPage: boolean; endCursor: string | null };
    };
  }

  /** What a result stands for: its record or page, nothing, or an error in the words of the service. */
  function successOf(result: Result | undefined, value: unknown): unknown {
    if (!result || value === null || value === undefined) return value;
    const name = servedName(value);
    if (name === result.success.name) return value;
    const failure = result.failures.find((each) => each.name === name);
    if (!failure) return null;
    const { message } = value as { readonly message: string };
    throw new GraphQLError(message, { extensions: { result: { ...value, __typename: name } } });
  }

  async function record({ type, lookup }: Entity, id: unknown): Promise<unknown> {
    if (lookup === undefined) return null;
    if (lookup.kind === 'list') {
      const list = (await wholeList(lookup.adapter, {}, {})) ?? [];
      return (
        list.find(
          (each) =>
            String((each as Typed | null)?.id) === String(id) &&
            (servedName(each) ?? type.name) === type.name,
        ) ?? null
      );
    }
    const { argument, field, result } = lookup;
    const isInt = String(getNullableType(argument.type)) === 'Int';
    const sent = isInt ? Number(id) : String(id);
    const ask = ofService(root.name, field);
    return successOf(result, await ask({}, { [argument.name]: sent }, {}, {} as never));
  }

  async function entity(representation: unknown): Promise<unknown> {
    const { __typename: name, id } = representation as Typed;
    const found = served.entities.find(({ type }) => type.name === name);
    if (!found?.lookup || id === undefined) throw refusal('BAD_USER_INPUT');
    const value = await record(found, id);
    return value && { ...value, __typename: served.upstreamType(name!) };
  }

  /** The resolver of the service for a served field. */
  function ofService(type: string, field: string): Resolver {
    const name = isRoot(type) ? rootField(type, field) : field;
    const of = service.getType(served.upstreamType(type));
    const resolve = isObjectType(of) ? of.getFields()[name]?.resolve : undefined;
    if (resolve) return resolve as Resolver;
    return (source, args, context, info) => {
      const value = (source as Record<string, unknown>)[name];
      return typeof value === 'function' ? value.call(source, args, context, info) : value;
    };
  }

  function isRoot(type: string): boolean {
    return type === root.name || type === schema.getMutationType()?.name;
  }

  function rootField(type: string, field: string): string {
    const kind = type === root.name ? 'query' : 'mutation';
    const operation = getOperationAST(served.toUpstream(parse(`${kind} { ${field} }`)));
    return (operation!.selectionSet.selections[0] as FieldNode).name.value;
  }
}

/** A cursor is the number of records up to its own. */
function cursorAt({ name, parent }: Adapter, place: number): string {
  return Buffer.from(JSON.stringify({ parent, name, place, fill: '.'.repeat(40) })).toString(
    'base64url',
  );
}

function placeOf({ name, parent }: Adapter, cursor: unknown): number | undefined {
  if (typeof cursor !== 'string' || cursor === '') return undefined;
  try {
    const read = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as Record<string, unknown>;
    if (read['parent'] === parent && read['name'] === name) return read['place'] as number;
  } catch {
    // Any other text.
  }
  throw refusal('CURSOR_INVALID');
}

function filtersIn({ filters }: PagedField, args: Args): Args {
  const names = filters.map(({ name }) => name).filter((name) => name in args);
  return Object.fromEntries(names.map((name) => [name, args[name]]));
}

/** The gateway's words differ; their code counts. */
function refusal(code: string): GraphQLError {
  return new GraphQLError('(of the gateway)', { extensions: { code } });
}
