import type { GraphQLSchema } from 'graphql';
import { fieldName } from './field-name.ts';
import { OperatorMistake } from '../../operator-mistake.ts';

/** Relay's; no other type has that name (Relay, cursor connections, 5). */
export const RELAY_PAGE_INFO = 'PageInfo';

/** How names of the upstream are served: with the prefix of SCHEMA_PREFIX, where there is one. */
export interface RootNames {
  /** Of a type; the prefix is put before it. */
  type(name: string): string;
  /** A served type's name without the prefix. */
  unprefixed(type: string): string;
  /** Of a field of a root type; the prefix goes before it, and the name goes on with a capital. */
  field(operation: Operation, name: string): string;
  /** Of a field of Query that is derived. */
  derived(name: string): string;
  /** What the upstream calls a served field of Query. */
  upstream(field: string): string;
}

type Operation = 'Query' | 'Mutation' | 'Subscription';

/** @throws OperatorMistake when the prefix leads to a name that is taken */
export function rootNames(snapshot: GraphQLSchema, prefix: string): RootNames {
  const taken = Object.keys(snapshot.getTypeMap()).find((name) => snapshot.getType(prefix + name));
  if (prefix !== '' && taken !== undefined) throw takenName(prefix, taken);
  const bound = [snapshot.getQueryType(), snapshot.getMutationType()].find(
    (root) => root && root.getInterfaces().length > 0,
  );
  if (prefix !== '' && bound) throw boundRoot(bound.name, bound.getInterfaces()[0]!.name);
  const derived = (name: string) =>
    prefix === '' ? name : fieldName(prefix) + name.charAt(0).toUpperCase() + name.slice(1);
  const fields = {
    Query: servedFields(snapshot.getQueryType(), derived),
    Mutation: servedFields(snapshot.getMutationType(), derived),
    Subscription: servedFields(snapshot.getSubscriptionType(), derived),
  };
  const upstream = new Map(Array.from(fields.Query, ([name, served]) => [served, name]));
  return {
    type: (name) => prefix + name,
    unprefixed: (type) => (type.startsWith(prefix) ? type.slice(prefix.length) : type),
    field: (operation, name) => fields[operation].get(name) ?? name,
    derived,
    upstream: (field) => upstream.get(field) ?? field,
  };
}

function takenName(prefix: string, type: string): OperatorMistake {
  return new OperatorMistake(
    `SCHEMA_PREFIX ${prefix} makes ${prefix}${type} of ${type}, and the service has a type of that name already. ` +
      'Choose another prefix.',
  );
}

function boundRoot(root: string, type: string): OperatorMistake {
  return new OperatorMistake(
    `SCHEMA_PREFIX cannot rename the fields of ${root}, since ${root} implements ${type}, which names them. ` +
      'Remove SCHEMA_PREFIX, or that interface from the schema snapshot.',
  );
}

/** Two names may differ in the case of their first letter alone. */
function servedFields(
  root: ReturnType<GraphQLSchema['getQueryType']>,
  derived: (name: string) => string,
): ReadonlyMap<string, string> {
  const served = new Map<string, string>();
  const taken = new Set<string>();
  for (const name of Object.keys(root?.getFields() ?? {})) {
    let free = derived(name);
    while (taken.has(free)) free += '_';
    taken.add(free);
    served.set(name, free);
  }
  return served;
}
