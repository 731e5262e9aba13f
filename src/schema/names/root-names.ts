import type { GraphQLSchema } from 'graphql';
import { OperatorMistake } from '../../errors.ts';

/** Relay reserves this name: no other type may have it (Relay, cursor connections, 5). */
export const RELAY_PAGE_INFO = 'PageInfo';

/** The names under which types and root fields are served: with the prefix of SCHEMA_PREFIX, if one is set. */
export interface RootNames {
  /** The prefixed name of a type. */
  type(name: string): string;
  /** The name of a served type without the prefix. */
  unprefixed(type: string): string;
  /** The served name of a root field of the upstream: the prefix, then the name with a capital. */
  field(operation: Operation, name: string): string;
  /** The served name of a derived field of Query. */
  derived(name: string): string;
  /** The upstream's name of a served field of Query. */
  upstream(field: string): string;
}

type Operation = 'Query' | 'Mutation' | 'Subscription';

/** @throws OperatorMistake if a prefixed name is taken, or a root field cannot be renamed */
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

/** The name of a type as a field: `Person` becomes `person`, `HRPerson` becomes `hrPerson`. */
export function fieldName(type: string): string {
  const [capitals = ''] = /^[A-Z]+(?=[A-Z][a-z])|^[A-Z]+(?![a-z])|^[A-Z]/.exec(type) ?? [];
  return capitals.toLowerCase() + type.slice(capitals.length);
}

function takenName(prefix: string, type: string): OperatorMistake {
  return new OperatorMistake(
    `SCHEMA_PREFIX ${prefix} renames ${type} to ${prefix}${type}, but the service already has a type of that name. ` +
      'Choose another prefix.',
  );
}

function boundRoot(root: string, type: string): OperatorMistake {
  return new OperatorMistake(
    `SCHEMA_PREFIX cannot rename the fields of ${root}, because ${root} implements ${type}, whose fields must keep their names. ` +
      'Remove SCHEMA_PREFIX, or remove that interface from the schema snapshot.',
  );
}

/** Two upstream names may differ only in the case of their first letter: the second one gets a `_` appended. */
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
