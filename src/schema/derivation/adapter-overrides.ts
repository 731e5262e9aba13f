import {
  getNullableType,
  isAbstractType,
  isObjectType,
  isRequiredArgument,
  type GraphQLNamedType,
  type GraphQLObjectType,
  type GraphQLSchema,
} from 'graphql';
import { z } from 'zod';
import type { FoundList } from './find-lists.ts';
import { OperatorMistake } from '../../errors.ts';
import { idArgument, idOf } from './reach-parent.ts';
import type { FieldOverride, TypeOverride, TypeOverrides } from '../derived.ts';

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

/**
 * Checks the content of adapters.json against the schema.
 *
 * @param json undefined if the file does not exist
 */
export function checkOverrides(
  json: unknown,
  schema: GraphQLSchema,
  lists: readonly FoundList[],
): { overrides: AdapterOverrides; mistakes: readonly string[] } {
  const { fields, types, mistakes } = readShape(json);
  const paged = lists
    .filter(({ verdict }) => 'paged' in verdict)
    .map(({ parent, name }) => `${parent.name}.${name}`);
  for (const key of fields.keys()) {
    if (!paged.includes(key)) mistakes.push(unknownList(key, lists, paged));
  }
  for (const [name, type] of types) {
    const found = mistakesOfType(schema, name, type, lists);
    mistakes.push(...found);
    if (found.length > 0) types.delete(name);
  }
  return { overrides: { fields, types }, mistakes };
}

const NAME = z
  .string()
  .regex(/^(?!__|_rs)[_A-Za-z]\w*$/, 'must be a GraphQL name that begins neither with __ nor _rs');

const FIELD = z.strictObject({
  skip: z.boolean().optional(),
  all: NAME.optional(),
  connection: NAME.optional(),
  size: z.int().positive().optional(),
  page: z.int().positive().optional(),
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
  '': '"fields" and "types"',
  fields: '"skip", "all", "connection", "size" and "page"',
  types: '"byId", "list", "connection" and "edge"',
};

function readShape(json: unknown) {
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

function mistakesOfType(
  schema: GraphQLSchema,
  name: string,
  { byId, list, ...types }: TypeOverride,
  lists: readonly FoundList[],
): string[] {
  const type = schema.getType(name);
  if (isAbstractType(type) && byId === undefined && list === undefined) {
    return mistakesOfNames(type, types, lists);
  }
  if (!isObjectType(type))
    return [`types.${name}: there is no object type of that name. Remove it, or correct the name.`];
  const given = [...(byId ? ['byId'] : []), ...(list ? ['list'] : [])];
  if (!idOf(type)) {
    return [
      ...given.map((key) => `types.${name}.${key}: ${name} has no plain field id. Remove it.`),
      ...mistakesOfNames(type, types, lists),
    ];
  }
  return [
    ...mistakesOfNames(type, types, lists),
    ...(byId ? mistakesOfById(schema, type, byId) : []),
    ...(list ? mistakesOfList(schema, type, list, lists) : []),
  ];
}

/** Whether a name is taken is known only after all names have been chosen (see name-adapters.ts). */
function mistakesOfNames(
  type: GraphQLNamedType,
  { connection, edge }: TypeOverride,
  lists: readonly FoundList[],
): string[] {
  const isListed = lists.some(
    ({ verdict }) => 'paged' in verdict && verdict.paged.nodeType === type,
  );
  const given = Object.entries({ connection, edge }).filter(([, name]) => name !== undefined);
  if (!isListed) {
    return given.map(
      ([key]) => `types.${type.name}.${key}: no paged field lists ${type.name}. Remove it.`,
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
  if (getNullableType(field.type) !== type) {
    return [
      `${place}: ${root?.name}.${byId} returns ${String(field.type)}. Write one that returns ${type.name}.`,
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
