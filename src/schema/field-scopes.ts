import {
  getNamedType,
  type DocumentNode,
  type FieldNode,
  type GraphQLCompositeType,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from 'graphql';
import { forbidden } from '../errors.ts';
import { onlyOperation, visitFields } from '../selections.ts';
import { fieldAt, objectTypesOf, type Adapter, type DerivedField, type Entity } from './derived.ts';

/** Scopes by the name of a type, or the coordinate of a field. */
export type ScopesByPlace = ReadonlyMap<string, readonly string[]>;

/** The scopes that fields need, those of derived fields included. */
export interface FieldScopes {
  /** Every scope that something needs. */
  readonly names: ReadonlySet<string>;
  /** What follows from the scopes of a type is not repeated. */
  readonly places: ScopesByPlace;
}

/** A scope that a field of an operation needs. */
interface Need {
  readonly scope: string;
  /** The field that needs it, for messages: `The field Person.contacts`. */
  readonly subject: string;
}

/** A field of an operation that needs scopes. */
export interface ScopedUse {
  readonly node: FieldNode;
  readonly needs: readonly Need[];
}

interface ScopeParts {
  /** What adapters.json says, by the names of types and the coordinates of fields. */
  readonly written: ReadonlyMap<string, string>;
  /** The service's own schema, under served names. */
  readonly schema: GraphQLSchema;
  /** The name of the query root. */
  readonly root: string;
  readonly derived: readonly DerivedField[];
}

/** Gives derived fields the scopes of what they are derived from. */
export function fieldScopes({ written, schema, root, derived }: ScopeParts): FieldScopes {
  const places = new Map<string, readonly string[]>();
  for (const [place, scope] of written) places.set(place, [scope]);
  for (const field of written.size > 0 ? derived : []) {
    const scopes = sourcesOf(field, schema, root).flatMap((source) => written.get(source) ?? []);
    addScopes(places, `${field.parent}.${field.name}`, scopes);
  }
  return { names: scopeNames(places), places };
}

/** The places that a derived field reads, whatever is selected of it. */
function sourcesOf(field: DerivedField, schema: GraphQLSchema, root: string): string[] {
  switch (field.kind) {
    case 'all':
    case 'connection': {
      const { adapter } = field;
      const { pageType, count = '' } = adapter;
      return [
        ...sourcesOfList(adapter),
        ...sourcesOfRecords(schema, adapter),
        ...(field.kind === 'connection' ? [`${pageType.name}.${count}`] : []),
      ];
    }
    case 'record':
      return sourcesOfLookup(root, field.entity);
    case 'entities':
      return field.entities.flatMap((entity) => sourcesOfLookup(root, entity));
    case 'service':
      return [];
  }
}

/** Every scope of these places. */
export function scopeNames(places: ScopesByPlace): ReadonlySet<string> {
  return new Set([...places.values()].flat());
}

/** Adds to the scopes of a place. @returns whether any of them was new */
export function addScopes(
  places: Map<string, readonly string[]>,
  place: string,
  scopes: readonly string[],
): boolean {
  const known = places.get(place) ?? [];
  const all = [...new Set([...known, ...scopes])];
  if (all.length === known.length) return false;
  places.set(place, all);
  return true;
}

/**
 * The places that reading a list uses: its field, and the types and the field of its pages.
 */
function sourcesOfList({ parent, name, result, pageType }: Adapter): string[] {
  return [
    `${parent}.${name}`,
    ...(result ? [result.success.name] : []),
    pageType.name,
    `${pageType.name}.items`,
  ];
}

/** The places of its records that are always read: cursors contain what identifies a record. */
function sourcesOfRecords(schema: GraphQLSchema, { nodeType, identity }: Adapter): string[] {
  const fields = objectTypesOf(schema, nodeType).flatMap((type) =>
    identity.flatMap(([name = '']) => (type.getFields()[name] ? [`${type.name}.${name}`] : [])),
  );
  return [nodeType.name, ...fields];
}

/** The places that the lookup of a record by its id uses. */
function sourcesOfLookup(root: string, { lookup }: Entity): string[] {
  if (!lookup) return [];
  if (lookup.kind === 'list') return sourcesOfList(lookup.adapter);
  return [`${root}.${lookup.field}`];
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

/**
 * Refuses an operation with fields that its caller may not read.
 *
 * @param caller undefined: callers need no credential, and have every scope
 * @throws FORBIDDEN
 */
export function enforceScopes(
  uses: readonly ScopedUse[],
  caller: { readonly scopes: ReadonlySet<string> } | undefined,
): void {
  if (!caller) return;
  for (const { scope, subject } of uses.flatMap(({ needs }) => needs)) {
    if (caller.scopes.has(scope)) continue;
    throw forbidden(
      `${subject} needs the scope "${scope}", which this credential does not have. The operator of this gateway can grant it.`,
    );
  }
}

/** Makes the function that returns what a field needs: by its parent, its type and itself. */
function needsIn(
  schema: GraphQLSchema,
  { places }: FieldScopes,
): (parent: GraphQLCompositeType, node: FieldNode) => readonly Need[] {
  const known = new Map<string, readonly Need[]>();
  return (parent, node) => {
    if (node.name.value.startsWith('__')) return NO_NEEDS;
    return objectTypesOf(schema, parent).flatMap(({ name: type }) => {
      const field = `${type}.${node.name.value}`;
      const ofField = known.get(field) ?? placesOf(schema, type, node).flatMap(needsAt);
      known.set(field, ofField);
      return ofField;
    });
  };

  function needsAt(place: string): readonly Need[] {
    const scopes = places.get(place) ?? [];
    return scopes.map((scope) => ({ scope, subject: `The ${kindOf(place)} ${place}` }));
  }
}

const NO_NEEDS: readonly Need[] = [];

function kindOf(place: string): string {
  return place.includes('.') ? 'field' : 'type';
}

/** A field, its parent and the type that it returns. */
function placesOf(schema: GraphQLSchema, type: string, { name }: FieldNode): string[] {
  const field = fieldAt(schema, type, name.value);
  if (!field) return [];
  return [...new Set([`${type}.${field.name}`, type, getNamedType(field.type).name])];
}

/** Returns the scopes of everything that a fragment reads. */
export function scopesOfFragment(
  schema: GraphQLSchema,
  places: ScopesByPlace,
  fragment: DocumentNode,
): readonly string[] {
  const scopes: string[] = [];
  visitFields(schema, fragment, (node, parent) => {
    for (const { name: type } of objectTypesOf(schema, parent)) {
      scopes.push(...placesOf(schema, type, node).flatMap((place) => places.get(place) ?? []));
    }
  });
  return scopes;
}
