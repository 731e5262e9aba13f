import { ChangeType, CriticalityLevel, diff, type Change } from '@graphql-inspector/core';
import {
  buildClientSchema,
  buildSchema,
  executeSync,
  getNamedType,
  isInterfaceType,
  isObjectType,
  lexicographicSortSchema,
  printSchema,
  type DocumentNode,
  type GraphQLSchema,
  type IntrospectionQuery,
} from 'graphql';
import { onOneLine, type LiveSchema } from './introspect.ts';

/** The kinds of change, with what each means to callers as long as the snapshot stays the same. */
export const KINDS = {
  breaking: 'requests that callers may send fail, or return something else',
  dangerous: 'answers may contain what the snapshot does not define, or a default has changed',
  additive: 'nothing fails; what was added is not served',
} as const;

export type ChangeKind = keyof typeof KINDS;

interface SchemaChange {
  readonly message: string;
  /** For example `Person.firstName`. */
  readonly path: string | null;
}

/** The changes from the snapshot to the live schema. */
export type SchemaDifference = Readonly<Record<ChangeKind, readonly SchemaChange[]>>;

/** Compares only what the service can report: what its introspection does not support does not count as removed. */
export async function compareSchemas(
  snapshot: GraphQLSchema,
  { schema, query }: Pick<LiveSchema, 'schema' | 'query'>,
): Promise<SchemaDifference> {
  const before = reported(snapshot, query);
  const after = reported(schema, query);
  const difference: Record<ChangeKind, SchemaChange[]> = {
    breaking: [],
    dangerous: [],
    additive: [],
  };
  if (before === after) return difference;
  // Built from SDL: in schemas that were built in another way, diff misses @oneOf and deprecated arguments.
  const changes = await diff(buildSchema(before), buildSchema(after));
  for (const change of inOrder(changes)) {
    const { message, path = null } = change;
    difference[kindOfChange(change, snapshot)].push({ message: onOneLine(message), path });
  }
  if (Object.values(difference).every((list) => list.length === 0)) {
    difference.additive.push({ message: UNIMPORTANT_CHANGE, path: null });
  }
  return difference;
}

const UNIMPORTANT_CHANGE = 'A description changed, or something else that nothing depends on';

/** The SDL of what a service with this schema answers to the introspection query. */
function reported(schema: GraphQLSchema, query: DocumentNode): string {
  const { data } = executeSync({ schema, document: query });
  const answered = buildClientSchema(data as unknown as IntrospectionQuery);
  return printSchema(lexicographicSortSchema(answered));
}

const ADDED: ReadonlySet<string> = new Set([
  ChangeType.TypeAdded,
  ChangeType.FieldAdded,
  ChangeType.DirectiveAdded,
]);

/** Omits changes within something added, lists each deprecation once, and puts changed descriptions last. */
function inOrder(changes: readonly Change[]): Change[] {
  const added = new Set(changes.filter(({ type }) => ADDED.has(type)).map(({ path }) => path));
  const isWithinAdded = ({ type, path = '' }: Change) => {
    if (type === ChangeType.ObjectTypeInterfaceAdded) return false;
    const [top = '', field] = path.split('.');
    const around = [top, `${top}.${field}`].filter((place) => !ADDED.has(type) || place !== path);
    return around.some((place) => added.has(place));
  };
  return changes
    .filter((change) => !REPEATED.test(change.type) && !isWithinAdded(change))
    .toSorted((a, b) => Number(isDescription(a)) - Number(isDescription(b)));
}

function isDescription({ type }: Change): boolean {
  return type.includes('DESCRIPTION');
}

/** Changes that another change reports as well. */
const REPEATED = /^DIRECTIVE_USAGE_(FIELD_DEFINITION|ENUM_VALUE|ARGUMENT)_(ADDED|REMOVED)$/;

function kindOfChange(change: Change, snapshot: GraphQLSchema): ChangeKind {
  const { type, meta } = change;
  const { level } = change.criticality;
  if (level === CriticalityLevel.Breaking) return 'breaking';
  const { addedInterfaceName = '', enumName = '' } = meta as Partial<Record<string, string>>;
  // A record of that type may appear where the snapshot promises the interface, and the gateway does not know its type.
  if (type === ChangeType.ObjectTypeInterfaceAdded) {
    return snapshot.getType(addedInterfaceName) ? 'dangerous' : 'additive';
  }
  // Callers cannot send an argument or an enum value that the snapshot does not have.
  if (type === ChangeType.FieldArgumentAdded) return 'additive';
  if (type === ChangeType.EnumValueAdded && !isReturned(enumName, snapshot)) return 'additive';
  return level === CriticalityLevel.Dangerous ? 'dangerous' : 'additive';
}

function isReturned(type: string, schema: GraphQLSchema): boolean {
  return Object.values(schema.getTypeMap())
    .filter((holder) => isObjectType(holder) || isInterfaceType(holder))
    .flatMap((holder) => Object.values(holder.getFields()))
    .some((field) => getNamedType(field.type).name === type);
}
