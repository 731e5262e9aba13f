import { CriticalityLevel, diff, DiffRule } from '@graphql-inspector/core';
import { buildSchema, lexicographicSortSchema, printSchema, type GraphQLSchema } from 'graphql';
import { onOneLine } from './live-schema.ts';

/** The kinds of change, with what each means to callers as long as the snapshot stays the same. */
export const KINDS = {
  breaking: 'requests that callers may send fail, or return something else',
  dangerous: 'answers may contain what the snapshot does not define, or a default has changed',
  additive: 'nothing fails; what was added is not served',
} as const;

export type ChangeKind = keyof typeof KINDS;

/** The changes from the snapshot to the live schema. */
export type SchemaDifference = Readonly<Record<ChangeKind, readonly string[]>>;

/** Compares two schemas. The kinds are the levels of GraphQL Inspector. */
export async function compareSchemas(
  snapshot: GraphQLSchema,
  live: GraphQLSchema,
): Promise<SchemaDifference> {
  const changes = await diff(printed(snapshot), printed(live), [DiffRule.simplifyChanges]);
  const of = (kind: CriticalityLevel) =>
    changes
      .filter(({ criticality }) => criticality.level === kind)
      .map(({ message }) => onOneLine(message));
  return {
    breaking: of(CriticalityLevel.Breaking),
    dangerous: of(CriticalityLevel.Dangerous),
    additive: of(CriticalityLevel.NonBreaking),
  };
}

/** Without what directives of the service say in a snapshot: an introspection does not show it. */
function printed(schema: GraphQLSchema): GraphQLSchema {
  return buildSchema(printSchema(lexicographicSortSchema(schema)));
}
