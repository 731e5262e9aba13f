import type { SubschemaConfig } from '@graphql-tools/delegate';
import { parseSelectionSet, type IResolvers } from '@graphql-tools/utils';
import {
  isLeafType,
  isObjectType,
  isTypeDefinitionNode,
  isTypeExtensionNode,
  Kind,
  NoUnusedFragmentsRule,
  print,
  specifiedRules,
  validate,
  type GraphQLSchema,
  type TypeDefinitionNode,
  type TypeExtensionNode,
} from 'graphql';
import { fieldAt, hasFields, typesWithFields } from '../schema/derived.ts';
import type { AddedParts } from './additions.ts';
import { requirementsOf } from './requirements.ts';

/*
 * Mistakes of a company that graphql-tools does not report: it would replace what the gateway has, leave something out,
 * or answer with null. All others end the start with its own message.
 */

export function mistakesBefore(served: GraphQLSchema, added: AddedParts): string[] {
  const definitions = added.documents
    .flatMap((document) => document.definitions)
    .filter((definition) => isTypeDefinitionNode(definition) || isTypeExtensionNode(definition));
  return [
    ...definitions.flatMap((definition) => [
      ...replacedTypes(served, definition),
      ...fieldsWithoutResolver(served, definition, added),
    ]),
    ...added.resolvers.flatMap((map) => replacedResolvers(served, map)),
    ...added.subschemas.flatMap((subschema, at) =>
      mistakesOfSubschema(served, subschema, `subschemas[${at}]`),
    ),
  ];
}

/** Finds mistakes that only the stitched schema shows. */
export function mistakesAfter(
  served: GraphQLSchema,
  schema: GraphQLSchema,
  added: AddedParts,
): string[] {
  const subscriptions = schema.getSubscriptionType() && !served.getSubscriptionType();
  return [
    ...(subscriptions
      ? ['The schema has subscriptions, which the gateway does not serve. Leave them out.']
      : []),
    ...added.resolvers
      .flatMap((map) => Object.keys(map))
      .filter((type) => !schema.getType(type))
      .map((type) => `resolvers has ${type}, which is not a type of any schema. Correct the name.`),
    // graphql-tools makes such a type of a name that it does not find.
    ...Object.values(schema.getTypeMap())
      .filter((type) => hasFields(type) && '_fake' in type.getFields())
      .map(
        ({ name }) => `typeDefs uses ${name}, which is not a type of any schema. Correct the name.`,
      ),
    ...changedFields(served, schema),
    ...mistakesOfRequirements(schema, added),
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

function fieldsWithoutResolver(
  served: GraphQLSchema,
  definition: Definition,
  { resolvers, subschemas }: AddedParts,
): string[] {
  const name = definition.name.value;
  const known = [served, ...subschemas.map(({ schema }) => schema)]
    .map((schema) => schema.getType(name))
    .filter(isObjectType);
  const isRoot = name === served.getQueryType()?.name || name === 'Mutation';
  // The values of a type that only typeDefs has come from its resolvers.
  if (!isRoot && known.length === 0) return [];
  const types = [name, ...known.flatMap((type) => type.getInterfaces().map(String))];
  return fieldNames(definition)
    .filter((field) => !types.some((type) => isResolved(resolvers, type, field)))
    .filter((field) => !known.some((type) => field in type.getFields()))
    .map(
      (field) =>
        `typeDefs adds ${name}.${field}, but resolvers has no ${name}.${field}. Add a resolver for it.`,
    );
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

function mistakesOfSubschema(
  served: GraphQLSchema,
  { schema, merge = {}, transforms = [] }: SubschemaConfig,
  at: string,
): string[] {
  // Only the stitched schema shows what transforms make of it.
  if (transforms.length > 0) return [];
  const roots = [
    [served.getQueryType(), schema.getQueryType()],
    [served.getMutationType(), schema.getMutationType()],
  ] as const;
  const replaced = roots.flatMap(([ours, theirs]) =>
    Object.keys(theirs?.getFields() ?? {})
      .filter((field) => ours?.getFields()[field])
      .map(
        (field) =>
          `${at} has ${theirs!.name}.${field}, which the gateway already has. Rename or remove it with a transform.`,
      ),
  );
  const merges = Object.entries(merge).flatMap(([type, { fieldName }]) => {
    if (!schema.getType(type)) {
      return [`${at}.merge has ${type}, which is not a type of its schema. Correct the name.`];
    }
    if (fieldName === undefined || schema.getQueryType()?.getFields()[fieldName]) return [];
    return [
      `${at}.merge.${type} has the fieldName ${fieldName}, which its schema does not have in Query. Correct the name.`,
    ];
  });
  return [...replaced, ...merges];
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

function mistakesOfRequirements(schema: GraphQLSchema, added: AddedParts): string[] {
  const required = requirementsOf(added);
  const invalid = required.flatMap(({ of, type, selectionSet }) => {
    const fault = faultOf(schema, type, [selectionSet]);
    return fault === undefined ? [] : [`${of} has a selectionSet that is not valid: ${fault}`];
  });
  if (invalid.length > 0) return invalid;
  // All of them are selected together.
  return [...Map.groupBy(required, ({ type }) => type)].flatMap(([type, ofType]) => {
    const texts = ofType.map(({ selectionSet }) => selectionSet);
    const fault = faultOf(schema, type, texts);
    if (fault === undefined) return [];
    const names = ofType.map(({ of }) => of).join(' and ');
    return [
      `${names} require fields that cannot be selected together. Give them aliases in the selectionSet: ${fault}`,
    ];
  });
}

const RULES = specifiedRules.filter((rule) => rule !== NoUnusedFragmentsRule);

function faultOf(
  schema: GraphQLSchema,
  type: string,
  texts: readonly string[],
): string | undefined {
  const selections = texts.flatMap((text) => parseSelectionSet(text).selections);
  const fragment = {
    kind: Kind.FRAGMENT_DEFINITION,
    name: { kind: Kind.NAME, value: 'Required' },
    typeCondition: { kind: Kind.NAMED_TYPE, name: { kind: Kind.NAME, value: type } },
    selectionSet: { kind: Kind.SELECTION_SET, selections },
  } as const;
  return validate(schema, { kind: Kind.DOCUMENT, definitions: [fragment] }, RULES)[0]?.message;
}
