import {
  getNamedType,
  getOperationAST,
  isAbstractType,
  isObjectType,
  separateOperations,
  TypeInfo,
  visit,
  visitWithTypeInfo,
  type DocumentNode,
  type FieldNode,
  type GraphQLCompositeType,
  type GraphQLNamedType,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from 'graphql';
import type { Need, ScopedUse } from '../selections.ts';
import type { Adapter, DerivedField, Entity, FieldPath, Guard } from './derived.ts';

/** All scopes, or all tags, of something. */
interface Marks {
  readonly scopes: readonly string[];
  readonly tags: readonly string[];
}

/** The scopes that fields need, those of derived fields included. */
export interface FieldScopes {
  /** Every scope that something needs. */
  readonly names: ReadonlySet<string>;
  /** What the SDL of the subgraph says at a type, a field or an argument, by its name or coordinate. */
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
  const add = (place: string, more: Marks) => {
    if (more.scopes.length + more.tags.length === 0) return;
    const { scopes, tags } = marks.get(place) ?? NO_MARKS;
    marks.set(place, {
      scopes: [...new Set([...scopes, ...more.scopes])],
      tags: [...new Set([...tags, ...more.tags])],
    });
  };
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
      case 'node':
      case 'nodes':
        for (const [type] of field.nodes.ids) {
          add(`${type}.${field.nodes.recordId}`, at(`${type}.id`));
        }
        break;
      case 'service':
    }
  }
  // They look up the same records.
  const entities = derived.find(({ kind }) => kind === 'entities');
  const ofEntities = entities && marks.get(`${entities.parent}.${entities.name}`);
  for (const { kind, parent, name } of derived) {
    if (ofEntities && (kind === 'node' || kind === 'nodes')) add(`${parent}.${name}`, ofEntities);
  }
  const names = new Set([...marks.values()].flatMap(({ scopes }) => scopes));
  return { names, marks };
}

const NO_MARKS: Marks = { scopes: [], tags: [] };

function marksOf({ scope, tags = [] }: Guard): Marks {
  return { scopes: scope === undefined ? [] : [scope], tags };
}

function merged(marks: readonly (Marks | undefined)[]): Marks {
  return {
    scopes: marks.flatMap((each) => each?.scopes ?? []),
    tags: marks.flatMap((each) => each?.tags ?? []),
  };
}

/** What a list is read through: its field, with the arguments for paging, and the types and the field of its pages. */
function sourcesOfList({ parent, name, first, after, result, pageType }: Adapter): string[] {
  const field = `${parent}.${name}`;
  return [
    field,
    `${field}(${first.name}:)`,
    `${field}(${after.name}:)`,
    ...(result ? [result.wanted.name] : []),
    pageType.name,
    `${pageType.name}.items`,
  ];
}

/** What is read of its records in any case: cursors contain what identifies a record. */
function sourcesOfRecords(schema: GraphQLSchema, { nodeType, identity }: Adapter): string[] {
  const types = isAbstractType(nodeType) ? schema.getPossibleTypes(nodeType) : [nodeType];
  const fields = types.flatMap((type) => identity.flatMap((path) => fieldsOn(type, path)));
  return [nodeType.name, ...fields];
}

function fieldsOn(type: GraphQLNamedType, [name, ...further]: FieldPath): string[] {
  const field = name === undefined || !isObjectType(type) ? undefined : type.getFields()[name];
  if (!field) return [];
  return [`${type.name}.${field.name}`, ...fieldsOn(getNamedType(field.type), further)];
}

/** What a record is looked up through by its id. */
function sourcesOfLookup(root: string, { lookup }: Entity): string[] {
  if (!lookup) return [];
  if (lookup.kind === 'list') return sourcesOfList(lookup.adapter);
  const field = `${root}.${lookup.field}`;
  return [field, `${field}(${lookup.argument.name}:)`];
}

/**
 * Makes the function that finds the fields of an operation that need scopes, whatever their conditions are. A field that
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
    const types = new TypeInfo(schema);
    visit(
      onlyOperation(document, operation).document,
      visitWithTypeInfo(types, {
        Field: (node) => {
          const parent = types.getParentType();
          const needs = parent ? needsOf(parent, node) : [];
          if (needs.length > 0) uses.push({ node, needs });
        },
      }),
    );
    return uses;
  };
}

const NO_USES: readonly ScopedUse[] = [];

/** Returns one operation of a document, with the fragments that it uses. */
export function onlyOperation(document: DocumentNode, { name }: OperationDefinitionNode) {
  const own = separateOperations(document)[name?.value ?? ''] ?? document;
  return { document: own, operation: getOperationAST(own, name?.value)! };
}

/** Makes the function that returns what a field needs: by its parent, its type, itself and its arguments. */
export function needsIn(
  schema: GraphQLSchema,
  { marks }: FieldScopes,
): (parent: GraphQLCompositeType, node: FieldNode) => readonly Need[] {
  const known = new Map<string, readonly Need[]>();
  return (parent, node) => {
    const name = node.name.value;
    if (name.startsWith('__')) return NO_NEEDS;
    const types = isAbstractType(parent) ? schema.getPossibleTypes(parent) : [parent];
    return types.flatMap(({ name: type }) => {
      const place = `${type}.${name}`;
      const ofField = known.get(place) ?? ofFieldIn(type, name);
      known.set(place, ofField);
      const ofArguments = (node.arguments ?? []).flatMap((argument) => {
        const at = `${place}(${argument.name.value}:)`;
        return needsAt(at, `The argument ${at}`);
      });
      return ofArguments.length > 0 ? [...ofField, ...ofArguments] : ofField;
    });
  };

  function ofFieldIn(type: string, name: string): readonly Need[] {
    const parent = schema.getType(type);
    const field = isObjectType(parent) ? parent.getFields()[name] : undefined;
    if (!field) return NO_NEEDS;
    const place = `${type}.${name}`;
    const returned = getNamedType(field.type).name;
    return [
      ...needsAt(place, `The field ${place}`),
      ...needsAt(type, `The type ${type}`),
      ...(returned === type ? [] : needsAt(returned, `The type ${returned}`)),
    ];
  }

  function needsAt(place: string, subject: string): readonly Need[] {
    return marks.get(place)?.scopes.map((scope) => ({ scope, subject })) ?? NO_NEEDS;
  }
}

const NO_NEEDS: readonly Need[] = [];
