import {
  getNullableType,
  isInterfaceType,
  isNonNullType,
  type GraphQLInterfaceType,
  type GraphQLSchema,
} from 'graphql';
import { idOf, type Adapter, type Entity, type NodeInterface } from '../derived.ts';
import type { RootNames } from '../names/root-names.ts';
import type { EntityReport } from './plan-entities.ts';

export interface NodePlan {
  /** Undefined if the schema does not allow it. */
  readonly nodes: NodeInterface | undefined;
  readonly warnings: readonly string[];
}

interface Derived {
  /** The adapters of the query root. */
  readonly adapters: readonly Adapter[];
  readonly entities: readonly Entity[];
  readonly names: RootNames;
}

/**
 * Decides which types implement Relay's Node (Relay, global object identification).
 *
 * The `id` of every entity becomes a global id: a client that stores records by `id` would otherwise take records of
 * two types for one. The service's own id moves to `recordId`. The entities that can be found by an id that is never
 * null implement Node. Interfaces with an `id` follow their implementations, if all of these are entities.
 */
export function planNodes(schema: GraphQLSchema, derived: Derived): NodePlan {
  const { entities, names } = derived;
  const type = names.type('Node');
  const [field, list] = [names.derived('node'), names.derived('nodes')];
  const obstacles = [
    ...takenNames(schema, derived, type, [field, list]),
    ...mixed(schema, entities),
  ];
  if (obstacles.length > 0) {
    const why = obstacles.join(', and ');
    return {
      nodes: undefined,
      warnings: [`NODE_INTERFACE=on has no effect: ${why}. Set NODE_INTERFACE=off.`],
    };
  }
  const types = [
    ...entities.map(({ type: one }) => one),
    ...interfacesWithId(schema).filter((one) => outsiders(schema, one, entities).length === 0),
  ];
  let recordId = 'recordId';
  while (types.some((one) => one.getFields()[recordId])) recordId += '_';
  return {
    nodes: {
      type,
      field,
      list,
      recordId,
      ids: new Map(types.map((one) => [one.name, one.getFields()['id']!.type])),
      implementedBy: new Set(
        entities
          .filter((entity) => entity.lookup && isNonNullType(idOf(entity.type)!.type))
          .map((entity) => entity.type.name),
      ),
    },
    warnings: [],
  };
}

/** Adds to the reports of entities what `schema explain` says about Node. */
export function withNodes(
  reports: readonly EntityReport[],
  { type, field, recordId, implementedBy }: NodeInterface,
): EntityReport[] {
  return reports.map((report) => {
    const obstacle =
      report.foundBy === null
        ? 'it cannot be found by its id'
        : 'the service may return null as id';
    const node = implementedBy.has(report.type)
      ? `${field}(id: …) returns it.`
      : `it does not implement ${type}: ${obstacle}.`;
    const why = `Its id is global, and the service's own id is ${recordId}; ${node}`;
    return { ...report, why: [...report.why, why] };
  });
}

function takenNames(
  schema: GraphQLSchema,
  { adapters, entities }: Derived,
  type: string,
  fields: readonly string[],
): string[] {
  const root = schema.getQueryType()!;
  const known = new Set([
    ...Object.keys(root.getFields()),
    ...adapters.flatMap(({ all, connection }) => [all?.field, connection?.field]),
    ...entities.map(({ field }) => field),
  ]);
  return [
    ...(schema.getType(type) ? [`a type ${type} already exists`] : []),
    ...fields
      .filter((field) => known.has(field))
      .map((field) => `a field ${root.name}.${field} already exists`),
  ];
}

/** Finds interfaces whose `id` would be an `ID` in one implementation and something else in another. */
function mixed(schema: GraphQLSchema, entities: readonly Entity[]): string[] {
  return interfacesWithId(schema).flatMap((one) => {
    const others = outsiders(schema, one, entities);
    const { objects } = schema.getImplementations(one);
    const isId = String(getNullableType(one.getFields()['id']!.type)) === 'ID';
    if (isId || others.length === 0 || others.length === objects.length) return [];
    return [`${others[0]} implements ${one.name}, but its id cannot be global`];
  });
}

function interfacesWithId(schema: GraphQLSchema): GraphQLInterfaceType[] {
  return Object.values(schema.getTypeMap())
    .filter((type) => isInterfaceType(type))
    .filter((type) => type.getFields()['id'] !== undefined);
}

/** The implementations that are not entities. */
function outsiders(
  schema: GraphQLSchema,
  type: GraphQLInterfaceType,
  entities: readonly Entity[],
): string[] {
  const known = new Set(entities.map((entity) => entity.type.name));
  return schema
    .getImplementations(type)
    .objects.map(({ name }) => name)
    .filter((name) => !known.has(name));
}
