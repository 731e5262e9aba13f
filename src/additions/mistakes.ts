import { isInterfaceType, print, type DefinitionNode, type GraphQLSchema } from 'graphql';
import { fieldAt, typesWithFields } from '../schema/derived.ts';
import type { AddedParts } from './additions.ts';

/*
 * Mistakes of a company by which graphql-tools would silently replace what the gateway has, or that would open what
 * scopes protect. Others are reported when the schemas are stitched.
 */

export function mistakesBefore(
  served: GraphQLSchema,
  { documents, resolvers, subschemas }: AddedParts,
): string[] {
  const taken = (part: string, type: string, fields: readonly string[]) =>
    fields
      .filter((field) => fieldAt(served, type, field))
      .map(
        (field) =>
          `${part} has ${type}.${field}, which the gateway already has. Choose another name.`,
      );
  const definitions = documents.flatMap((document) => document.definitions);
  const ofDefinition = (definition: DefinitionNode) => {
    const { fields = [] } = 'fields' in definition ? definition : {};
    const names = fields.map(({ name }) => name.value);
    const type = 'name' in definition ? (definition.name?.value ?? '') : '';
    const hasScopes = print(definition).includes('@requiresScopes');
    const scoped = `typeDefs has @requiresScopes in ${type}. Write scopes of added fields and types into adapters.json, beside the schema snapshot.`;
    return [...taken('typeDefs', type, names), ...(hasScopes ? [scoped] : [])];
  };
  const ofSubschema = ({ schema, transforms = [] }: AddedParts['subschemas'][number], at: number) =>
    // Only the stitched schema shows what transforms make of it.
    ([schema.getQueryType(), schema.getMutationType()] as const).flatMap((root) =>
      root && transforms.length === 0
        ? taken(`subschemas[${at}]`, root.name, Object.keys(root.getFields()))
        : [],
    );
  return [
    ...definitions.flatMap(ofDefinition),
    ...resolvers
      .flatMap((map) => Object.entries(map))
      .flatMap(([type, fields]) => taken('resolvers', type, Object.keys(fields as object))),
    ...subschemas.flatMap(ofSubschema),
  ];
}

/**
 * Finds subscriptions; interfaces with resolvers or keys of merges, which would do nothing; and fields of another type:
 * operations without added fields are answered by the served schema.
 */
export function mistakesAfter(
  served: GraphQLSchema,
  schema: GraphQLSchema,
  { resolvers, subschemas }: AddedParts,
): string[] {
  if (schema.getSubscriptionType()) {
    return ['The schema has subscriptions, which the gateway does not serve. Leave them out.'];
  }
  const resolved = resolvers.flatMap((map) =>
    Object.keys(map).filter((type) => !Object.keys(map[type]!).every(isSpecial)),
  );
  const merged = subschemas.flatMap(({ merge = {} }) => Object.keys(merge));
  const interfaces = [...resolved, ...merged]
    .filter((type) => isInterfaceType(schema.getType(type)))
    .map(
      (type) =>
        `${type} is an interface. Write its resolvers, and what it is merged by, for each of its types.`,
    );
  const changed = typesWithFields(served).flatMap((parent) =>
    Object.values(parent.getFields())
      .filter(({ name, type }) => String(fieldAt(schema, parent.name, name)?.type) !== String(type))
      .map(
        ({ name, type }) =>
          `${parent.name}.${name} is of the type ${String(type)} in the gateway, and of another one in subschemas. Remove it there with a transform, or give it the same type.`,
      ),
  );
  return [...interfaces, ...changed];
}

/** Such as `__resolveType`. */
function isSpecial(field: string): boolean {
  return field.startsWith('__');
}
