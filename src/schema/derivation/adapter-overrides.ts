import {
  isAbstractType,
  isObjectType,
  isRequiredArgument,
  type GraphQLNamedType,
  type GraphQLObjectType,
  type GraphQLSchema,
} from 'graphql';
import { z } from 'zod';
import { isCount, type FoundList } from './find-lists.ts';
import { identityToWrite, identityMistake } from './identity.ts';
import { OperatorMistake } from '../../errors.ts';
import { canReturn, idArgument } from './reach-parent.ts';
import {
  idOf,
  type FieldOverride,
  type FieldPath,
  type PagedField,
  type TypeOverride,
  type TypeOverrides,
} from '../derived.ts';

/** The checked content of adapters.json, by which the operator overrides what detection decides. */
export interface AdapterOverrides {
  /** By paged field, for example `Query.persons`. */
  readonly fields: ReadonlyMap<string, FieldOverride>;
  readonly types: TypeOverrides;
}

/** Lists every mistake in adapters.json, each with its correction. */
export class OverridesError extends OperatorMistake {
  override name = 'OverridesError';
  constructor(mistakes: readonly string[]) {
    const many = mistakes.length === 1 ? 'a mistake' : `${mistakes.length} mistakes`;
    super(
      `adapters.json, beside the schema snapshot, has ${many}:\n` +
        mistakes.map((mistake) => `- ${mistake}`).join('\n'),
    );
  }
}

/** Checks the content of adapters.json, as it was read, against the schema. */
export function checkOverrides(
  { fields, types, mistakes: ofShape }: ReadOverrides,
  schema: GraphQLSchema,
  lists: readonly FoundList[],
): { overrides: AdapterOverrides; mistakes: readonly string[] } {
  const mistakes = [...ofShape];
  const paged = lists
    .filter(({ verdict }) => 'paged' in verdict)
    .map(({ parent, name }) => `${parent.name}.${name}`);
  for (const [key, field] of fields) {
    const list = lists.find(({ parent, name }) => `${parent.name}.${name}` === key);
    if (!list || 'why' in list.verdict) {
      mistakes.push(unknownList(key, lists, paged));
      continue;
    }
    mistakes.push(...mistakesOfCount(key, list.verdict.paged, field));
    const ofIdentity = mistakesOfIdentity(schema, key, list.verdict.paged, field);
    mistakes.push(...ofIdentity);
    if (ofIdentity.length > 0) fields.set(key, { ...field, identity: undefined });
  }
  const connected = connectedTypes(lists, fields);
  for (const { parent, name, verdict } of lists) {
    const isResult = 'why' in verdict || verdict.paged.result !== undefined;
    if (!isResult && fields.get(`${parent.name}.${name}`)?.member !== undefined) {
      mistakes.push(
        `fields.${parent.name}.${name}.member: the list returns pages, not a union or interface. Remove it.`,
      );
    }
  }
  for (const [name, type] of types) {
    const found = mistakesOfType(schema, name, type, { lists, connected });
    mistakes.push(...found);
    if (found.length > 0) types.delete(name);
  }
  return { overrides: { fields, types }, mistakes };
}

const NAME = z
  .string()
  .regex(/^(?!__|_rs)[_A-Za-z]\w*$/, 'must be a GraphQL name that begins neither with __ nor _rs');

const PATH = z
  .string()
  .regex(/^[_A-Za-z]\w*(\.[_A-Za-z]\w*)*$/, 'must be names of fields joined by dots')
  .transform((path): FieldPath => path.split('.'));

const FIELD = z.strictObject({
  skip: z.boolean().optional(),
  all: NAME.optional(),
  connection: NAME.optional(),
  size: z.int().positive().optional(),
  page: z.int().positive().optional(),
  identity: z.array(PATH).min(1).optional(),
  count: NAME.nullable().optional(),
  member: NAME.optional(),
  after: NAME.optional(),
});
const TYPE = z.strictObject({
  byId: NAME.nullable().optional(),
  list: NAME.nullable().optional(),
  connection: NAME.optional(),
  edge: NAME.optional(),
});
const FILE = z.strictObject({
  fields: z.record(z.string(), FIELD).optional(),
  types: z.record(z.string(), TYPE).optional(),
});

/** The keys allowed at each depth, to suggest in place of an unknown one. */
const KEYS: Readonly<Record<string, string>> = {
  '': keysOf(FILE),
  fields: keysOf(FIELD),
  types: keysOf(TYPE),
};

function keysOf({ shape }: z.ZodObject): string {
  const keys = Object.keys(shape).map((key) => `"${key}"`);
  return `${keys.slice(0, -1).join(', ')} and ${keys.at(-1)}`;
}

interface ReadOverrides {
  readonly fields: Map<string, FieldOverride>;
  readonly types: Map<string, TypeOverride>;
  readonly mistakes: readonly string[];
}

/**
 * Reads adapters.json, whatever the schema.
 *
 * @param json undefined if the file does not exist
 */
export function readOverrides(json: unknown): ReadOverrides {
  const read = FILE.safeParse(json ?? {});
  const { fields, types } = (json ?? {}) as Record<string, unknown>;
  const mistakes = (read.error?.issues ?? []).map((issue) => {
    const place = issue.path.join('.');
    if (issue.code !== 'unrecognized_keys') return `${place || 'The file'}: ${issue.message}.`;
    const unknown = issue.keys.map((key) => `"${key}"`).join(', ');
    return `${place || 'The file'}: ${unknown} is unknown. Write ${KEYS[String(issue.path[0] ?? '')]}.`;
  });
  return { fields: entriesOf(fields, FIELD), types: entriesOf(types, TYPE), mistakes };
}

/** The entries that can be read, even if others cannot: all mistakes are reported together. */
function entriesOf<Entry extends object>(record: unknown, shape: z.ZodType<Entry>) {
  const entries = typeof record === 'object' && record !== null ? Object.entries(record) : [];
  return new Map(
    entries.map(([key, entry]) => [key, shape.safeParse(entry).data ?? ({} as Entry)]),
  );
}

function unknownList(key: string, lists: readonly FoundList[], paged: readonly string[]): string {
  const found = lists.find(({ parent, name }) => `${parent.name}.${name}` === key);
  if (found && 'why' in found.verdict) {
    return `fields.${key}: this is not a paged field, because ${found.verdict.why}. Remove it.`;
  }
  const instead =
    paged.length > 0
      ? `Write one of ${paged.join(', ')}.`
      : 'This schema has no paged field: remove it.';
  return `fields.${key}: there is no such list. ${instead}`;
}

function mistakesOfCount(
  key: string,
  { pageType: page }: PagedField,
  { count }: FieldOverride,
): string[] {
  if (count == null || isCount(page.getFields()[count])) return [];
  return [
    `fields.${key}.count: ${page.name} has no field ${count}: Int. Write one with the number of records of all pages, ` +
      'or null if it has none.',
  ];
}

function mistakesOfIdentity(
  schema: GraphQLSchema,
  key: string,
  { nodeType, identity: known }: PagedField,
  { identity, connection }: FieldOverride,
): string[] {
  const types = (isAbstractType(nodeType) ? schema.getPossibleTypes(nodeType) : [nodeType]).filter(
    (type) => isObjectType(type),
  );
  if (!identity) {
    return known.length === 0 && connection !== undefined
      ? [
          `fields.${key}.connection: it gets no connection, because ${nodeType.name} has no plain field id. ` +
            `Remove it, or write what identifies its records: ${identityToWrite(key, types)}.`,
        ]
      : [];
  }
  return identity.flatMap((path) => {
    const mistakes = types.flatMap((type) => identityMistake(type, path) ?? []);
    return [...new Set(mistakes)].map((mistake) => `fields.${key}.identity: ${mistake}`);
  });
}

/** The types of the lists that get a connection. */
function connectedTypes(
  lists: readonly FoundList[],
  fields: ReadonlyMap<string, FieldOverride>,
): ReadonlySet<GraphQLNamedType> {
  return new Set(
    lists.flatMap(({ parent, name, verdict }) => {
      if ('why' in verdict) return [];
      const { nodeType, identity } = verdict.paged;
      const given = fields.get(`${parent.name}.${name}`)?.identity ?? identity;
      return given.length > 0 ? [nodeType] : [];
    }),
  );
}

function mistakesOfType(
  schema: GraphQLSchema,
  name: string,
  { byId, list, ...types }: TypeOverride,
  {
    lists,
    connected,
  }: {
    readonly lists: readonly FoundList[];
    readonly connected: ReadonlySet<GraphQLNamedType>;
  },
): string[] {
  const type = schema.getType(name);
  if (isAbstractType(type) && byId === undefined && list === undefined) {
    return mistakesOfNames(type, types, connected);
  }
  if (!isObjectType(type))
    return [`types.${name}: there is no object type of that name. Remove it, or correct the name.`];
  const given = [...(byId ? ['byId'] : []), ...(list ? ['list'] : [])];
  if (!idOf(type)) {
    return [
      ...given.map((key) => `types.${name}.${key}: ${name} has no plain field id. Remove it.`),
      ...mistakesOfNames(type, types, connected),
    ];
  }
  return [
    ...mistakesOfNames(type, types, connected),
    ...(byId ? mistakesOfById(schema, type, byId) : []),
    ...(list ? mistakesOfList(schema, type, list, lists) : []),
  ];
}

/** Whether a name is taken is known only after all names have been chosen (see name-adapters.ts). */
function mistakesOfNames(
  type: GraphQLNamedType,
  { connection, edge }: TypeOverride,
  connected: ReadonlySet<GraphQLNamedType>,
): string[] {
  const given = Object.entries({ connection, edge }).filter(([, name]) => name !== undefined);
  if (!connected.has(type)) {
    return given.map(
      ([key]) =>
        `types.${type.name}.${key}: no paged field lists ${type.name} in a connection. Remove it.`,
    );
  }
  return connection === undefined || connection.endsWith('Connection')
    ? []
    : [
        `types.${type.name}.connection: ${connection} does not end with Connection, by which clients recognize a connection. ` +
          `Write ${connection}Connection, for example.`,
      ];
}

function mistakesOfById(schema: GraphQLSchema, type: GraphQLObjectType, byId: string): string[] {
  const place = `types.${type.name}.byId`;
  const root = schema.getQueryType();
  const field = root?.getFields()[byId];
  if (!field) {
    return [
      `${place}: there is no ${root?.name}.${byId}. Write a root field, or null to use none.`,
    ];
  }
  if (!canReturn(schema, field, type)) {
    return [
      `${place}: ${root?.name}.${byId} returns ${String(field.type)}. Write one that returns ${type.name}, or a union or interface with it.`,
    ];
  }
  return idArgument(field)
    ? []
    : [
        `${place}: ${root?.name}.${byId} needs more than an id. Write a field whose only required argument is the id.`,
      ];
}

function mistakesOfList(
  schema: GraphQLSchema,
  type: GraphQLObjectType,
  list: string,
  lists: readonly FoundList[],
): string[] {
  const place = `types.${type.name}.list`;
  const root = schema.getQueryType();
  const verdict = lists.find(({ parent, name }) => parent === root && name === list)?.verdict;
  if (!verdict || 'why' in verdict) {
    return [
      `${place}: there is no paged field ${root?.name}.${list}. Write one of the root, or null to use none.`,
    ];
  }
  const { nodeType, filters } = verdict.paged;
  if (nodeType !== type && !(isAbstractType(nodeType) && schema.isSubType(nodeType, type))) {
    return [
      `${place}: ${root?.name}.${list} lists ${nodeType.name}. Write one that lists ${type.name}.`,
    ];
  }
  return filters.some(isRequiredArgument)
    ? [
        `${place}: ${root?.name}.${list} has required arguments, which a lookup by id cannot provide. Write another list.`,
      ]
    : [];
}
