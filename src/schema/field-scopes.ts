import {
  getNamedType,
  isObjectType,
  type DocumentNode,
  type FieldNode,
  type GraphQLCompositeType,
  type GraphQLNamedType,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from 'graphql';
import { onlyOperation, visitFields, type Need, type ScopedUse } from '../selections.ts';
import type { Guard } from './derivation/overrides.ts';
import {
  fieldAt,
  objectTypesOf,
  type Adapter,
  type DerivedField,
  type Entity,
  type FieldPath,
} from './derived.ts';

/** The scopes and tags of a type, a field or an argument. */
export interface Marks {
  readonly scopes: readonly string[];
  readonly tags: readonly string[];
}

/** The scopes that fields need, those of derived fields included. */
export interface FieldScopes {
  /** Every scope that something needs. */
  readonly names: ReadonlySet<string>;
  /** By the name of a type, or the coordinate of a field or argument. What follows from a type is not repeated. */
  readonly marks: ReadonlyMap<string, Marks>;
}

interface ScopeParts {
  /** What adapters.json says, by the names of types and the coordinates of fields and arguments (`Query.persons(email:)`). */
  readonly guards: readonly ReadonlyMap<string, Guard>[];
  /** The service's own schema, under served names. */
  readonly schema: GraphQLSchema;
  /** The name of the query root. */
  readonly root: string;
  readonly derived: readonly DerivedField[];
}

/** Gives derived fields the scopes and tags of what they are derived from. */
export function fieldScopes({ guards, schema, root, derived }: ScopeParts): FieldScopes {
  const marks = new Map<string, Marks>();
  const add = (place: string, more: Marks) => void addMarks(marks, place, more);
  for (const [place, guard] of guards.flatMap((map) => [...map])) add(place, marksOf(guard));
  if (marks.size === 0) return { names: new Set(), marks };
  const written = new Map(marks);
  const at = (...places: readonly string[]): Marks =>
    merged(places.map((place) => written.get(place)));
  for (const field of derived) {
    const place = `${field.parent}.${field.name}`;
    switch (field.kind) {
      case 'all':
      case 'connection': {
        const { adapter } = field;
        add(place, at(...sourcesOfList(adapter), ...sourcesOfRecords(schema, adapter)));
        if (field.kind === 'connection' && adapter.count !== undefined) {
          add(place, at(`${adapter.pageType.name}.${adapter.count}`));
        }
        for (const { name } of adapter.filters) {
          add(`${place}(${name}:)`, at(`${adapter.parent}.${adapter.name}(${name}:)`));
        }
        break;
      }
      case 'record':
        add(place, at(...sourcesOfLookup(root, field.entity)));
        break;
      case 'entities':
        for (const entity of field.entities) add(place, at(...sourcesOfLookup(root, entity)));
        break;
      case 'service':
    }
  }
  return { names: scopeNames(marks), marks };
}

/** Every scope in these marks. */
export function scopeNames(marks: FieldScopes['marks']): ReadonlySet<string> {
  return new Set([...marks.values()].flatMap(({ scopes }) => scopes));
}

/** Adds to the marks of a place. @returns whether any of them was new */
export function addMarks(marks: Map<string, Marks>, place: string, more: Marks): boolean {
  if (more.scopes.length + more.tags.length === 0) return false;
  const known = marks.get(place) ?? NO_MARKS;
  const scopes = [...new Set([...known.scopes, ...more.scopes])];
  const tags = [...new Set([...known.tags, ...more.tags])];
  const isMore = scopes.length + tags.length > known.scopes.length + known.tags.length;
  if (isMore) marks.set(place, { scopes, tags });
  return isMore;
}

export const NO_MARKS: Marks = { scopes: [], tags: [] };

/** What adapters.json says about one place. */
export function marksOf({ scope, tags = [] }: Guard): Marks {
  return { scopes: scope === undefined ? [] : [scope], tags };
}

function merged(marks: readonly (Marks | undefined)[]): Marks {
  return {
    scopes: marks.flatMap((each) => each?.scopes ?? []),
    tags: marks.flatMap((each) => each?.tags ?? []),
  };
}

/**
 * The places that reading a list uses: its field, the arguments for paging, and the types and the field of its pages.
 */
function sourcesOfList({ parent, name, first, after, result, pageType }: Adapter): string[] {
  const field = `${parent}.${name}`;
  return [
    field,
    `${field}(${first.name}:)`,
    `${field}(${after.name}:)`,
    ...(result ? [result.success.name] : []),
    pageType.name,
    `${pageType.name}.items`,
  ];
}

/** The places of its records that are always read: cursors contain what identifies a record. */
function sourcesOfRecords(schema: GraphQLSchema, { nodeType, identity }: Adapter): string[] {
  const fields = objectTypesOf(schema, nodeType).flatMap((type) =>
    identity.flatMap((path) => fieldsOn(type, path)),
  );
  return [nodeType.name, ...fields];
}

function fieldsOn(type: GraphQLNamedType, [name, ...further]: FieldPath): string[] {
  const field = name === undefined || !isObjectType(type) ? undefined : type.getFields()[name];
  if (!field) return [];
  return [`${type.name}.${field.name}`, ...fieldsOn(getNamedType(field.type), further)];
}

/** The places that the lookup of a record by its id uses. */
function sourcesOfLookup(root: string, { lookup }: Entity): string[] {
  if (!lookup) return [];
  if (lookup.kind === 'list') return sourcesOfList(lookup.adapter);
  const field = `${root}.${lookup.field}`;
  return [field, `${field}(${lookup.argument.name}:)`];
}

/**
 * Makes the function that finds the fields of an operation that need scopes, even if they are skipped. A field that
 * is selected of an interface needs what it needs of each of the interface's types, as in Apollo Federation.
 *
 * @param schema with what a company adds
 */
export function scopedUsesIn(
  schema: GraphQLSchema,
  scopes: FieldScopes,
): (document: DocumentNode, operation: OperationDefinitionNode) => readonly ScopedUse[] {
  if (scopes.names.size === 0) return () => NO_USES;
  const needsOf = needsIn(schema, scopes);
  return (document, operation) => {
    const uses: ScopedUse[] = [];
    visitFields(schema, onlyOperation(document, operation).document, (node, parent) => {
      const needs = needsOf(parent, node);
      if (needs.length > 0) uses.push({ node, needs });
    });
    return uses;
  };
}

const NO_USES: readonly ScopedUse[] = [];

/** Makes the function that returns what a field needs: by its parent, its type, itself and its arguments. */
export function needsIn(
  schema: GraphQLSchema,
  { marks }: FieldScopes,
): (parent: GraphQLCompositeType, node: FieldNode) => readonly Need[] {
  const known = new Map<string, readonly Need[]>();
  return (parent, node) => {
    if (node.name.value.startsWith('__')) return NO_NEEDS;
    return objectTypesOf(schema, parent).flatMap(({ name: type }) => {
      const field = `${type}.${node.name.value}`;
      const ofField = known.get(field) ?? placesOf(schema, type, node).flatMap(needsAt);
      known.set(field, ofField);
      const ofArguments = placesOfArguments(field, node).flatMap(needsAt);
      return ofArguments.length > 0 ? [...ofField, ...ofArguments] : ofField;
    });
  };

  function needsAt(place: string): readonly Need[] {
    const scopes = marks.get(place)?.scopes ?? [];
    return scopes.map((scope) => ({ scope, subject: `The ${kindOf(place)} ${place}` }));
  }
}

const NO_NEEDS: readonly Need[] = [];

function kindOf(place: string): string {
  if (place.endsWith(')')) return 'argument';
  return place.includes('.') ? 'field' : 'type';
}

/** A field, its parent and the type that it returns. */
function placesOf(schema: GraphQLSchema, type: string, { name }: FieldNode): string[] {
  const field = fieldAt(schema, type, name.value);
  if (!field) return [];
  return [...new Set([`${type}.${field.name}`, type, getNamedType(field.type).name])];
}

function placesOfArguments(field: string, { arguments: args = [] }: FieldNode): string[] {
  return args.map(({ name }) => `${field}(${name.value}:)`);
}

/** Returns the scopes and tags of everything that a fragment reads. */
export function marksOfFragment(
  schema: GraphQLSchema,
  marks: FieldScopes['marks'],
  fragment: DocumentNode,
): Marks {
  const places: string[] = [];
  visitFields(schema, fragment, (node, parent) => {
    // An interface may have tags that its types do not have.
    for (const { name: type } of new Set([parent, ...objectTypesOf(schema, parent)])) {
      places.push(...placesOf(schema, type, node));
      places.push(...placesOfArguments(`${type}.${node.name.value}`, node));
    }
  });
  return merged(places.map((place) => marks.get(place)));
}
