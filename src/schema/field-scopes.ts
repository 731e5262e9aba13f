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
import { placesReadBy } from './derived-fields.ts';
import { fieldAt, objectTypesOf, type DerivedField } from './derived.ts';

/**
 * Scopes by the name of a type, or the coordinate of a field, derived fields included. What follows from the scopes of a
 * type is not repeated.
 */
export type ScopesByPlace = ReadonlyMap<string, readonly string[]>;

/** An operation of a document. */
export interface NamedDocument {
  readonly document: DocumentNode;
  readonly operation: OperationDefinitionNode;
}

/** A field of an operation that needs a scope. */
export interface ScopedUse {
  readonly node: FieldNode;
  readonly scope: string;
  /** What needs it: `Person.contacts`, or a type. */
  readonly place: string;
}

/**
 * Gives derived fields the scopes of what they are derived from.
 *
 * @param written what adapters.json says, by the names of types and the coordinates of fields
 * @param schema the service's own schema, under served names
 */
export function fieldScopes(
  written: ReadonlyMap<string, string>,
  schema: GraphQLSchema,
  derived: readonly DerivedField[],
): ScopesByPlace {
  const places = new Map(Array.from(written, ([place, scope]) => [place, [scope]]));
  for (const field of written.size > 0 ? derived : []) {
    const scopes = placesReadBy(field, schema).flatMap((place) => written.get(place) ?? []);
    addScopes(places, `${field.parent}.${field.name}`, scopes);
  }
  return places;
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
 * Makes the function that finds the fields of an operation that need scopes, even if they are skipped.
 *
 * @param schema with what a company adds
 */
export function scopedUsesIn(
  schema: GraphQLSchema,
  places: ScopesByPlace,
): (operation: NamedDocument) => readonly ScopedUse[] {
  return ({ document, operation }) =>
    places.size === 0 ? [] : usesIn(schema, places, onlyOperation(document, operation).document);
}

/** Returns the scopes of everything that a fragment reads. */
export function scopesOfFragment(
  schema: GraphQLSchema,
  places: ScopesByPlace,
  fragment: DocumentNode,
): readonly string[] {
  return usesIn(schema, places, fragment).map(({ scope }) => scope);
}

function usesIn(schema: GraphQLSchema, places: ScopesByPlace, document: DocumentNode): ScopedUse[] {
  const uses: ScopedUse[] = [];
  visitFields(schema, document, (node, parent) => {
    uses.push(...needsOf(schema, places, parent, node));
  });
  return uses;
}

/**
 * What a field needs: for itself, its parent and the type that it returns. A field that is selected of an interface needs
 * what it needs of each of the interface's types, as in Apollo Federation.
 */
function needsOf(
  schema: GraphQLSchema,
  scopes: ScopesByPlace,
  parent: GraphQLCompositeType,
  node: FieldNode,
): readonly ScopedUse[] {
  const name = node.name.value;
  return objectTypesOf(schema, parent).flatMap(({ name: type }) => {
    const field = fieldAt(schema, type, name);
    if (!field) return [];
    const places = new Set([`${type}.${name}`, type, getNamedType(field.type).name]);
    return [...places].flatMap((place) =>
      (scopes.get(place) ?? []).map((scope) => ({ node, scope, place })),
    );
  });
}

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
  for (const { scope, place } of uses) {
    if (caller.scopes.has(scope)) continue;
    const subject = `The ${place.includes('.') ? 'field' : 'type'} ${place}`;
    throw forbidden(
      `${subject} needs the scope "${scope}", which this credential does not have. The operator of this gateway can grant it.`,
    );
  }
}
