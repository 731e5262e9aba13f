import type { IResolvers } from '@graphql-tools/utils';
import {
  GraphQLError,
  type GraphQLFieldResolver,
  type GraphQLObjectType,
  type GraphQLResolveInfo,
} from 'graphql';
import { codedError } from '../../errors.ts';
import { surplusOf } from '../asking/page-fetcher.ts';
import { notEmpty } from '../asking/page-question.ts';
import { responsePath } from '../asking/response-path.ts';
import { fieldsBelow, selectionContext } from '../asking/response-places.ts';
import type { UpstreamLink } from '../asking/upstream-link.ts';
import { errorsAt, valueAt } from '../asking/upstream-value.ts';
import type { Entity } from '../derivation/entity.ts';
import type { Drains } from '../drains.ts';
import { checked } from '../read-field.ts';
import type { ServingContext } from '../serving-context.ts';
import { lookupById } from './lookup-by-id.ts';
import { lookupInList } from './lookup-in-list.ts';
import { readId } from './read-id.ts';
import { readRepresentation, wrongId } from './read-representation.ts';
import type { RecordId, RecordLookup } from './record-loader.ts';

interface EntityParts {
  readonly entities: readonly Entity[];
  /** The query root's name. */
  readonly root: string;
  readonly link: UpstreamLink;
  readonly drains: Pick<Drains, 'lookedUp'>;
  /** The SDL that `_service` gives. */
  readonly sdl: () => string;
}

type Resolver<Arguments> = GraphQLFieldResolver<unknown, ServingContext, Arguments>;

/** Resolves records that are asked for by their ids: `_entities`, and fields like `person(id)`. */
export function entityResolvers(parts: EntityParts): IResolvers {
  const { entities, root, sdl } = parts;
  const byName = new Map(entities.map((entity) => [entity.type.name, entity]));
  const fields = entities.flatMap((entity) =>
    entity.field === undefined ? [] : [[entity.field, resolveRecord(parts, entity)] as const],
  );
  return {
    [root]: {
      ...Object.fromEntries(fields),
      _service: () => ({ sdl: sdl() }),
      ...(entities.length > 0 && { _entities: resolveEntities(parts, byName) }),
    },
    ...(entities.length > 0 && {
      _Entity: { __resolveType: ({ __typename }: { __typename: string }) => __typename },
    }),
  };
}

function resolveRecord(parts: EntityParts, entity: Entity): Resolver<{ readonly id: unknown }> {
  return async (_source, args, context, info) => {
    const id = readId(args.id, entity.idType);
    if (id === undefined) throw wrongId(entity);
    const lookup = lookupFor(parts, entity, info);
    return recordAt({ entity, lookup, id }, responsePath(info.path), context, info);
  };
}

/** Of one operation. A megabyte can hold half a million that are bad, and to make as many errors takes a minute. */
const MAX_REPRESENTATIONS = 10_000;

/** In the order of the representations, with an error in the place of each that cannot be answered. */
function resolveEntities(
  parts: EntityParts,
  byName: ReadonlyMap<string, Entity>,
): Resolver<{ readonly representations: readonly unknown[] }> {
  const counts = new WeakMap<ServingContext, number>();
  return (_source, { representations }, context, info) => {
    const count = (counts.get(context) ?? 0) + representations.length;
    counts.set(context, count);
    if (count > MAX_REPRESENTATIONS) throw tooMany();
    const lookups = new Map<Entity, RecordLookup>();
    const at = responsePath(info.path);
    return Promise.all(
      representations.map(async (representation, place) => {
        try {
          const { entity, id } = readRepresentation(representation, byName);
          const lookup = lookups.get(entity) ?? lookupFor(parts, entity, info);
          lookups.set(entity, lookup);
          const record = await recordAt({ entity, lookup, id }, [...at, place], context, info);
          return record && { ...record, __typename: entity.type.name };
        } catch (error) {
          return placed(error, [...at, place], info);
        }
      }),
    );
  };
}

function tooMany(): GraphQLError {
  return codedError(
    'OPERATION_TOO_COMPLEX',
    `One operation may have ${MAX_REPRESENTATIONS} representations, those of all its \`_entities\` together. Split it into several.`,
  );
}

/** To put an error in its place, the executor would write out its stack trace, which takes longer than all else. */
function placed(
  error: unknown,
  path: ReturnType<typeof responsePath>,
  { fieldNodes }: GraphQLResolveInfo,
): unknown {
  if (!(error instanceof GraphQLError) || error.originalError || error.path) return error;
  const { message, extensions, cause } = error;
  const there = new GraphQLError(message, { nodes: fieldNodes, path, extensions });
  if (cause !== undefined) there.cause = cause;
  return there;
}

function lookupFor(
  { link, drains }: EntityParts,
  entity: Entity,
  info: GraphQLResolveInfo,
): RecordLookup {
  const selected = fieldsBelow(entity.type.name, selectionContext(info), info.fieldNodes);
  const selections = notEmpty([...selected.values()].flat());
  return entity.lookup!.kind === 'id'
    ? lookupById(link, entity.lookup!, selections, info)
    : lookupInList({ link, drains }, entity, entity.lookup!.adapter, selections, info);
}

async function recordAt(
  { entity, lookup, id }: { entity: Entity; lookup: RecordLookup; id: RecordId },
  path: ReturnType<typeof responsePath>,
  { records, surplusErrors }: ServingContext,
  { schema }: GraphQLResolveInfo,
): Promise<object | null> {
  try {
    const record = await records.load({ lookup, id });
    if (!record) return null;
    surplusErrors.push(...errorsAt(path, record.beside));
    const type = schema.getType(entity.type.name) as GraphQLObjectType;
    const value = checked(valueAt(record.found, path, surplusErrors), type, schema);
    if (value instanceof Error) throw value;
    return value as object | null;
  } catch (error) {
    surplusErrors.push(...errorsAt(path, surplusOf(error)));
    throw error;
  }
}
