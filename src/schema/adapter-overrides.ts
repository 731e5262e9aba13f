import { getNullableType, isObjectType, type GraphQLSchema } from 'graphql';
import { z } from 'zod';
import type { FoundList } from './find-lists.ts';
import { idArgument, idOf, type ByIdOverrides } from './reach-parent.ts';

/** What the operator decides otherwise than detection does: the file adapters.json, checked. */
export interface AdapterOverrides {
  /** By list, for example `Query.persons`. */
  readonly fields: ReadonlyMap<string, FieldOverride>;
  readonly byId: ByIdOverrides;
}

export interface FieldOverride {
  readonly skip?: boolean | undefined;
  readonly all?: string | undefined;
  readonly connection?: string | undefined;
}

/** The operator's to mend: every mistake in adapters.json, each with what to write instead. */
export class OverridesError extends Error {
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
  for (const [name, { byId }] of types) {
    const type = schema.getType(name);
    if (!isObjectType(type)) mistakes.push(`types.${name}: there is no object type of that name.`);
    else if (byId) mistakes.push(...mistakenById(schema, name, byId));
  }
  const byId = new Map(
    [...types].flatMap(([name, type]) => (type.byId === undefined ? [] : [[name, type.byId]])),
  );
  return { overrides: { fields, byId }, mistakes };
}

const NAME = z
  .string()
  .regex(/^(?!__|_rs)[_A-Za-z]\w*$/, 'must be a GraphQL name that begins neither with __ nor _rs');

const FILE = z.strictObject({
  fields: z
    .record(
      z.string(),
      z.strictObject({
        skip: z.boolean().optional(),
        all: NAME.optional(),
        connection: NAME.optional(),
      }),
    )
    .optional(),
  types: z.record(z.string(), z.strictObject({ byId: NAME.nullable().optional() })).optional(),
});

/** What may be written at each depth, to say so in place of what may not. */
const KEYS: Readonly<Record<string, string>> = {
  '': '"fields" and "types"',
  fields: '"skip", "all" and "connection"',
  types: '"byId"',
};

function readShape(json: unknown) {
  const read = FILE.safeParse(json ?? {});
  const { fields = {}, types = {} } = read.data ?? {};
  const mistakes = (read.error?.issues ?? []).map((issue) => {
    const place = issue.path.join('.');
    if (issue.code !== 'unrecognized_keys') return `${place || 'The file'}: ${issue.message}.`;
    const unknown = issue.keys.map((key) => `"${key}"`).join(', ');
    return `${place || 'The file'}: ${unknown} is unknown; write ${KEYS[String(issue.path[0] ?? '')]}.`;
  });
  return {
    fields: new Map(Object.entries(fields)),
    types: new Map(Object.entries(types)),
    mistakes,
  };
}

function unknownList(key: string, lists: readonly FoundList[], paged: readonly string[]): string {
  const found = lists.find(({ parent, name }) => `${parent.name}.${name}` === key);
  if (found && 'why' in found.verdict) {
    return `fields.${key}: this is no list in pages, since ${found.verdict.why}. Leave it out.`;
  }
  const there = paged.length > 0 ? `write one of ${paged.join(', ')}` : 'there are none here';
  return `fields.${key}: there is no such list; ${there}.`;
}

function mistakenById(schema: GraphQLSchema, name: string, byId: string): string[] {
  const place = `types.${name}.byId`;
  const type = schema.getType(name);
  if (!isObjectType(type)) return [];
  if (!idOf(type)) return [`${place}: ${name} has no plain field id. Leave it out.`];
  const field = schema.getQueryType()?.getFields()[byId];
  if (!field) return [`${place}: there is no Query.${byId}. Write a root field, or null for none.`];
  if (getNullableType(field.type) !== type) {
    return [`${place}: Query.${byId} gives ${String(field.type)}. Write one that gives ${name}.`];
  }
  return idArgument(field)
    ? []
    : [
        `${place}: Query.${byId} does not take an id alone. Write one whose only required argument is the id.`,
      ];
}
