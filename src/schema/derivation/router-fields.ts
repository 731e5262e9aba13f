import { getNamedType, isObjectType, isUnionType, type GraphQLSchema } from 'graphql';
import { OperatorMistake } from '../../operator-mistake.ts';
import type { RootNames } from './root-names.ts';

/** The types of what a router asks a subgraph for. */
export const ROUTER_TYPES: readonly string[] = ['_Any', '_Entity', '_Service'];

/**
 * The fields for routers that the service has itself, being a subgraph. They are not served, since this gateway
 * is another subgraph.
 *
 * @throws OperatorMistake when the service has a field of such a name that means something else
 */
export function routerFieldsOf(snapshot: GraphQLSchema, names: RootNames): ReadonlySet<string> {
  const root = snapshot.getQueryType();
  const there = Object.values(root?.getFields() ?? {}).filter(({ name }) =>
    ROUTER_FIELDS.has(name),
  );
  const [ours, others] = [
    there.filter(({ name, type }) => ROUTER_FIELDS.get(name) === routerTypeOf(type)),
    there.filter(({ name, type }) => ROUTER_FIELDS.get(name) !== routerTypeOf(type)),
  ];
  const clash = others.find(({ name }) => names.field('Query', name) === name);
  if (clash) throw takenField(`${root!.name}.${clash.name}`);
  return new Set(ours.map(({ name }) => name));
}

const ROUTER_FIELDS: ReadonlyMap<string, string> = new Map([
  ['_service', '_Service'],
  ['_entities', '_Entity'],
]);

/** The name of the type, where it has the shape that Federation gives it. */
function routerTypeOf(output: Parameters<typeof getNamedType>[0]): string | undefined {
  const type = getNamedType(output);
  const isRouters = isObjectType(type) ? type.getFields()['sdl'] !== undefined : isUnionType(type);
  return isRouters ? type?.name : undefined;
}

function takenField(field: string): OperatorMistake {
  return new OperatorMistake(
    `The service has a field ${field} of its own, and a subgraph of Federation needs that name for something else. ` +
      'Set SCHEMA_PREFIX, under which the field of the service has another name, or remove the field from the schema snapshot.',
  );
}
