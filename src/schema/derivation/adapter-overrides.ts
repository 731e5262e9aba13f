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
import { OperatorMistake } from '../../operator-mistake.ts';
import { idArgument, idOf, type TypeOverride, type TypeOverrides } from './reach-parent.ts';

/** What the operator decides otherwise than detection does: the file adapters.json, checked. */
export interface AdapterOverrides {
  /** By list, for example `Query.persons`. */
  readonly fields: ReadonlyMap<string, FieldOverride>;
  readonly types: TypeOverrides;
}

export interface FieldOverride {
  readonly skip?: boolean | undefined;
  readonly all?: string | undefined;
  readonly connection?: string | undefined;
}

/** Every mistake in adapters.json, each with what to write instead. */
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
 * Holds what adapters.json says against the schema.
 *
 * @param json undefined where there is no such file
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

/** What may be written at each depth, to say so in place of what may not. */
const KEYS: Readonly<Record<string, string>> = {
  '': '"fields" and "types"',
  fields: '"skip", "all" and "connection"',
  types: '"byId", "list", "connection" and "edge"',
};

function readShape(json: unknown) {
  const read = FILE.safeParse(json ?? {});
  const { fields, types } = (json ?? {}) as Record<string, unknown>;
  const mistakes = (read.error?.issues ?? []).map((issue) => {
    const place = issue.path.join('.');
    if (issue.code !== 'unrecognized_keys') return `${place || 'The file'}: ${issue.message}.`;
    const unknown = issue.keys.map((key) => `"${key}"`).join(', ');
    return `${place || 'The file'}: ${unknown} is unknown; write ${KEYS[String(issue.path[0] ?? '')]}.`;
  });
  return { fields: entriesOf(fields, FIELD), types: entriesOf(types, TYPE), mistakes };
}

/** What can be read, also where something else cannot: all mistakes are to be told together. */
function entriesOf<Entry extends object>(record: unknown, shape: z.ZodType<Entry>) {
  const entries = typeof record === 'object' && record !== null ? Object.entries(record) : [];
  return new Map(
    entries.map(([key, entry]) => [key, shape.safeParse(entry).data ?? ({} as Entry)]),
  );
}

function unknownList(key: string, lists: readonly FoundList[], paged: readonly string[]): string {
  const found = lists.find(({ parent, name }) => `${parent.name}.${name}` === key);
  if (found && 'why' in found.verdict) {
    return `fields.${key}: this is no list in pages, since ${found.verdict.why}. Leave it out.`;
  }
  const there = paged.length > 0 ? `write one of ${paged.join(', ')}` : 'there are none here';
  return `fields.${key}: there is no such list; ${there}.`;
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
  if (!isObjectType(type)) return [`types.${name}: there is no object type of that name.`];
  const given = [...(byId ? ['byId'] : []), ...(list ? ['list'] : [])];
  if (!idOf(type)) {
    return [
      ...given.map((key) => `types.${name}.${key}: ${name} has no plain field id. Leave it out.`),
      ...mistakesOfNames(type, types, lists),
    ];
  }
  return [
    ...mistakesOfNames(type, types, lists),
    ...(byId ? mistakesOfById(schema, type, byId) : []),
    ...(list ? mistakesOfList(schema, type, list, lists) : []),
  ];
}

/** Whether a name is free is seen when all are given. */
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
      ([key]) =>
        `types.${type.name}.${key}: no list in pages gives any ${type.name}. Leave it out.`,
    );
  }
  return connection === undefined || connection.endsWith('Connection')
    ? []
    : [
        `types.${type.name}.connection: ${connection} does not end with Connection, by which clients know one. ` +
          `Write ${connection}Connection, for example.`,
      ];
}

function mistakesOfById(schema: GraphQLSchema, type: GraphQLObjectType, byId: string): string[] {
  const place = `types.${type.name}.byId`;
  const root = schema.getQueryType();
  const field = root?.getFields()[byId];
  if (!field) {
    return [`${place}: there is no ${root?.name}.${byId}. Write a root field, or null for none.`];
  }
  if (getNullableType(field.type) !== type) {
    return [
      `${place}: ${root?.name}.${byId} gives ${String(field.type)}. Write one that gives ${type.name}.`,
    ];
  }
  return idArgument(field)
    ? []
    : [
        `${place}: ${root?.name}.${byId} does not take an id alone. Write one whose only required argument is the id.`,
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
      `${place}: there is no list in pages ${root?.name}.${list}. Write one of the root, or null for none.`,
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
        `${place}: ${root?.name}.${list} needs arguments, which nobody has who asks by id. Write another.`,
      ]
    : [];
}
