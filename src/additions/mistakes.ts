import type { SubschemaConfig } from '@graphql-tools/delegate';
import type { IResolvers } from '@graphql-tools/utils';
import {
  isLeafType,
  isTypeDefinitionNode,
  isTypeExtensionNode,
  print,
  type GraphQLSchema,
  type TypeDefinitionNode,
  type TypeExtensionNode,
} from 'graphql';
import { fieldAt, hasFields, typesWithFields } from '../schema/derived.ts';
import type { AddedParts } from './additions.ts';

/*
 * Mistakes of a company by which graphql-tools would silently replace what the gateway has, or that would open what
 * scopes protect.
 */

export function mistakesBefore(served: GraphQLSchema, added: AddedParts): string[] {
  const definitions = added.documents
    .flatMap((document) => document.definitions)
    .filter((definition) => isTypeDefinitionNode(definition) || isTypeExtensionNode(definition));
  return [
    ...definitions.flatMap((definition) => replacedTypes(served, definition)),
    ...added.resolvers.flatMap((map) => replacedResolvers(served, map)),
    ...added.subschemas.flatMap((subschema, at) => replacedRoots(served, subschema, at)),
  ];
}

/** Finds mistakes that only the stitched schema shows. */
export function mistakesAfter(served: GraphQLSchema, schema: GraphQLSchema): string[] {
  const subscriptions = schema.getSubscriptionType() && !served.getSubscriptionType();
  return [
    ...(subscriptions
      ? ['The schema has subscriptions, which the gateway does not serve. Leave them out.']
      : []),
    ...changedFields(served, schema),
  ];
}

type Definition = TypeDefinitionNode | TypeExtensionNode;

function replacedTypes(served: GraphQLSchema, definition: Definition): string[] {
  const name = definition.name.value;
  const type = served.getType(name);
  const mistakes = fieldNames(definition)
    .filter((field) => fieldAt(served, name, field))
    .map(
      (field) =>
        `typeDefs adds ${name}.${field}, which the gateway already has. Choose another name.`,
    );
  if (type && !hasFields(type)) {
    mistakes.push(
      `typeDefs changes ${name}, which the gateway already has. Only its object types and interfaces can be extended.`,
    );
  }
  if (print(definition).includes('@requiresScopes')) {
    mistakes.push(
      `typeDefs has @requiresScopes in ${name}. Write scopes of added fields and types into adapters.json, beside the schema snapshot.`,
    );
  }
  return mistakes;
}

function fieldNames(definition: Definition): readonly string[] {
  return 'fields' in definition ? (definition.fields ?? []).map(({ name }) => name.value) : [];
}

export function isResolved(resolvers: readonly IResolvers[], type: string, field: string): boolean {
  return resolvers.some((map) => field in ((map[type] ?? {}) as object));
}

function replacedResolvers(served: GraphQLSchema, resolvers: IResolvers): string[] {
  return Object.entries(resolvers).flatMap(([type, fields]) => {
    if (isLeafType(served.getType(type))) {
      return [
        `resolvers has ${type}, a type of the gateway whose values are not changed. Leave it out.`,
      ];
    }
    return Object.keys(fields as object)
      .filter((field) => fieldAt(served, type, field))
      .map(
        (field) =>
          `resolvers has ${type}.${field}, which the gateway already has. Add a field with another name.`,
      );
  });
}

function replacedRoots(
  served: GraphQLSchema,
  { schema, transforms = [] }: SubschemaConfig,
  at: number,
): string[] {
  // Only the stitched schema shows what transforms make of it.
  if (transforms.length > 0) return [];
  const roots = [
    [served.getQueryType(), schema.getQueryType()],
    [served.getMutationType(), schema.getMutationType()],
  ] as const;
  return roots.flatMap(([ours, theirs]) =>
    Object.keys(theirs?.getFields() ?? {})
      .filter((field) => ours?.getFields()[field])
      .map(
        (field) =>
          `subschemas[${at}] has ${theirs!.name}.${field}, which the gateway already has. Rename or remove it with a transform.`,
      ),
  );
}

/** Operations without added fields are answered by the served schema. */
function changedFields(served: GraphQLSchema, schema: GraphQLSchema): string[] {
  return typesWithFields(served).flatMap((parent) =>
    Object.values(parent.getFields())
      .filter(({ name, type }) => String(fieldAt(schema, parent.name, name)?.type) !== String(type))
      .map(
        ({ name, type }) =>
          `${parent.name}.${name} is of the type ${String(type)} in the gateway, and of another one in subschemas. Remove it there with a transform, or give it the same type.`,
      ),
  );
}
