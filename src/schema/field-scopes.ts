import {
  getNamedType,
  isObjectType,
  parse,
  type DocumentNode,
  type FieldNode,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from 'graphql';
import { forbidden, OperatorMistakes } from '../errors.ts';
import { onlyOperation, visitFields } from './selections.ts';
import { SUBJECT, type Overrides } from './derivation/overrides.ts';
import { fieldAt, objectTypesIn, objectTypesOf, type DerivedField } from './derived.ts';

/**
 * Scopes by the name of a type, or the coordinate of a field of an object type. Those of a type are also at each field
 * that returns it: a router looks only at a field and its parent.
 */
export type ScopesByPlace = ReadonlyMap<string, readonly string[]>;

/** What a field requires that a company adds. Its value is made of it. */
export interface Requirement {
  readonly type: string;
  readonly field: string;
  readonly selectionSet: string;
}

interface Scoped {
  readonly overrides: Overrides;
  readonly derived: readonly DerivedField[];
  readonly requirements: readonly Requirement[];
}

/**
 * Returns the scopes that adapters.json gives to types and fields. Derived fields have those of what they read, added
 * ones those of all that they require.
 *
 * @param schema with what a company adds
 * @throws OperatorMistakes about adapters.json
 */
export function fieldScopes(
  schema: GraphQLSchema,
  { overrides: { fields, types }, derived, requirements }: Scoped,
): ScopesByPlace {
  const written = new Map<string, readonly string[]>();
  for (const [place, { scope }] of [...Object.entries(fields), ...Object.entries(types)]) {
    if (scope !== undefined) written.set(place, [scope]);
  }
  checkPlaces(written, schema);
  const places = new Map(written);
  for (const { parent, name, reads } of derived) {
    const ofReads = reads.flatMap((place) => written.get(place) ?? []);
    add(places, `${parent}.${name}`, ofReads);
  }
  addReturned(places, schema);
  const required = requirements.map(({ type, field, selectionSet }) => ({
    place: `${type}.${field}`,
    fragment: parse(`fragment Required on ${type} ${selectionSet}`),
  }));
  // A required field may be an added field too.
  for (let grows = true; grows;) {
    const grown = required.map(({ place, fragment }) => {
      const ofRequired = usesIn(schema, places, fragment).map(({ scope }) => scope);
      return add(places, place, ofRequired);
    });
    grows = grown.includes(true);
  }
  return places;
}

/** Adds to the scopes of a place. @returns whether any of them was new */
function add(
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

/** Not at fields of interfaces: composition refuses scopes there, and copies those of their types. */
function addReturned(places: Map<string, readonly string[]>, schema: GraphQLSchema): void {
  for (const type of objectTypesIn(schema)) {
    for (const field of Object.values(type.getFields())) {
      const returned = getNamedType(field.type).name;
      add(places, `${type.name}.${field.name}`, places.get(returned) ?? []);
    }
  }
}

function checkPlaces(scopes: ScopesByPlace, schema: GraphQLSchema): void {
  const unknown = Array.from(scopes.keys()).filter((place) => {
    const [typeName = '', field] = place.split('.');
    const type = schema.getType(typeName);
    return !isObjectType(type) || (field !== undefined && !type.getFields()[field]);
  });
  if (unknown.length === 0) return;
  throw new OperatorMistakes(
    SUBJECT,
    unknown.map((place) => `${place}: ${SCOPED}`),
  );
}

const SCOPED =
  'only object types and their fields have scopes, and this is not one. Use names that `schema print` shows, of an interface ' +
  'those of its types; what gateway.config.ts adds needs GATEWAY_CONFIG.';

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

/**
 * A field needs its own scopes, and those of its parent. One that is selected of an interface needs what it needs of each
 * of the interface's types, as in Apollo Federation.
 */
function usesIn(schema: GraphQLSchema, places: ScopesByPlace, document: DocumentNode): ScopedUse[] {
  const uses: ScopedUse[] = [];
  visitFields(schema, document, (node, parent) => {
    const name = node.name.value;
    for (const { name: type } of objectTypesOf(schema, parent)) {
      if (!fieldAt(schema, type, name)) continue;
      for (const place of [`${type}.${name}`, type]) {
        for (const scope of places.get(place) ?? []) uses.push({ node, scope, place });
      }
    }
  });
  return uses;
}

/**
 * Refuses an operation with fields that its caller may not read.
 *
 * @param caller undefined: callers need no credential, and have every scope
 * @throws FORBIDDEN
 */
export function enforceScopes(
  uses: readonly Pick<ScopedUse, 'scope' | 'place'>[],
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
