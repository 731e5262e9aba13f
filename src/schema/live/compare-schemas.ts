import { ChangeType, diff, type Change } from '@graphql-inspector/core';
import {
  buildClientSchema,
  buildSchema,
  executeSync,
  lexicographicSortSchema,
  printSchema,
  type DocumentNode,
  type GraphQLSchema,
  type IntrospectionQuery,
} from 'graphql';
import type { LiveSchema } from './introspect.ts';
import { kindOfChange, type ChangeKind } from './kind-of-change.ts';
import { onOneLine } from './on-one-line.ts';

export interface SchemaChange {
  readonly message: string;
  /** Where: `Person.firstName`. */
  readonly path: string | null;
}

/** From the snapshot to the live schema. */
export type SchemaDifference = Readonly<Record<ChangeKind, readonly SchemaChange[]>>;

/** Compares only what the service can tell: what its introspection does not know is not called removed. */
export async function compareSchemas(
  snapshot: GraphQLSchema,
  { schema, query }: Pick<LiveSchema, 'schema' | 'query'>,
): Promise<SchemaDifference> {
  const before = shown(snapshot, query);
  const after = shown(schema, query);
  const difference: Record<ChangeKind, SchemaChange[]> = {
    breaking: [],
    dangerous: [],
    additive: [],
  };
  if (before === after) return difference;
  // Built of SDL, since only there the comparison finds @oneOf and deprecated arguments.
  const changes = await diff(buildSchema(before), buildSchema(after));
  for (const change of inOrder(changes)) {
    const { message, path = null } = change;
    difference[kindOfChange(change, snapshot)].push({ message: onOneLine(message), path });
  }
  if (Object.values(difference).every((found) => found.length === 0)) {
    difference.additive.push({ message: NOTHING_TO_DEPEND_ON, path: null });
  }
  return difference;
}

const NOTHING_TO_DEPEND_ON = 'A description changed, or something else that nothing depends on';

/** The SDL of what a service with this schema answers to the query. */
function shown(schema: GraphQLSchema, query: DocumentNode): string {
  const { data } = executeSync({ schema, document: query });
  const answered = buildClientSchema(data as unknown as IntrospectionQuery);
  return printSchema(lexicographicSortSchema(answered));
}

const ADDED: ReadonlySet<string> = new Set([
  ChangeType.TypeAdded,
  ChangeType.FieldAdded,
  ChangeType.DirectiveAdded,
]);

/** What is inside of something new goes without saying, a deprecation is said once, and descriptions come last. */
function inOrder(changes: readonly Change[]): Change[] {
  const added = new Set(changes.filter(({ type }) => ADDED.has(type)).map(({ path }) => path));
  const isWithinAdded = ({ type, path = '' }: Change) => {
    if (type === ChangeType.ObjectTypeInterfaceAdded) return false;
    const [top = '', field] = path.split('.');
    const around = [top, `${top}.${field}`].filter((place) => !ADDED.has(type) || place !== path);
    return around.some((place) => added.has(place));
  };
  return changes
    .filter((change) => !SAID_OTHERWISE.test(change.type) && !isWithinAdded(change))
    .toSorted((one, other) => Number(isWording(one)) - Number(isWording(other)));
}

function isWording({ type }: Change): boolean {
  return type.includes('DESCRIPTION');
}

const SAID_OTHERWISE = /^DIRECTIVE_USAGE_(FIELD_DEFINITION|ENUM_VALUE|ARGUMENT)_(ADDED|REMOVED)$/;
