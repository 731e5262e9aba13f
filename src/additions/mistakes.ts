import { Subschema, type SubschemaConfig } from '@graphql-tools/delegate';
import {
  isInterfaceType,
  NoUnusedFragmentsRule,
  OperationTypeNode,
  parse,
  print,
  specifiedRules,
  validate,
  type DefinitionNode,
  type GraphQLSchema,
} from 'graphql';
import { fieldAt } from '../schema/derived.ts';
import type { AddedParts } from './additions.ts';
import { visitFields } from '../schema/selections.ts';
import { requirementsOf } from './requirements.ts';

/**
 * Finds mistakes of a company by which graphql-tools would silently replace what the gateway has, or do nothing, or that
 * would open what scopes protect. Of types that differ, graphql-tools itself warns.
 *
 * @param schema the stitched schema
 */
export function mistakesIn(
  served: GraphQLSchema,
  schema: GraphQLSchema,
  { documents, resolvers, subschemas }: AddedParts,
): string[] {
  const taken = (part: string, type: string, fields: object) =>
    Object.keys(fields)
      .filter((field) => fieldAt(served, type, field))
      .map(
        (field) =>
          `${part} has ${type}.${field}, which the gateway already has. Choose another name.`,
      );
  const resolved = resolvers
    .flatMap((map) => Object.entries(map))
    .flatMap(([type, fields]) => taken('resolvers', type, fields as object));
  const roots = subschemas.flatMap((config, at) => {
    const { transformedSchema } = new Subschema(config);
    return [OperationTypeNode.QUERY, OperationTypeNode.MUTATION].flatMap((operation) => {
      const root = served.getRootType(operation)?.name ?? '';
      const fields = transformedSchema.getRootType(operation)?.getFields() ?? {};
      return taken(`subschemas[${at}]`, root, fields);
    });
  });
  // Those of graphql-tools are of object types: the fields of an interface would silently be null.
  const interfaces = [...resolvers, ...subschemas.map(({ merge = {} }) => merge)]
    .flatMap((map) => Object.entries(map as Readonly<Record<string, object>>))
    .filter(([type]) => isInterfaceType(schema.getType(type)))
    .filter(([, members]) => !Object.keys(members).every((name) => name.startsWith('__')))
    .map(
      ([type]) =>
        `${type} is an interface. Write its resolvers, and what it is merged by, for each of its types.`,
    );
  // graphql-tools would leave it out, and the resolver or the second service would get nothing.
  const keys = subschemas.flatMap(({ merge = {} }) =>
    Object.entries(merge).map(([type, { selectionSet = '{ __typename }' }]) => {
      return { place: `What ${type} is merged by`, type, selectionSet };
    }),
  );
  const required = requirementsOf({ resolvers, subschemas }).map(
    ({ type, field, selectionSet }) => {
      return { place: `What ${type}.${field} requires`, type, selectionSet };
    },
  );
  const ownFields = new Set(documents.flatMap(({ definitions }) => definitions).flatMap(fieldsOf));
  const missing = [...required, ...keys].flatMap(({ place, type, selectionSet }) => {
    const fragment = parse(`fragment Of on ${type} ${selectionSet}`);
    const found = validate(schema, fragment, RULES).map(
      ({ message }) => `${place} is not in the schema: ${message}`,
    );
    visitFields(schema, fragment, ({ name }, { name: parent }) => {
      const own = `${parent}.${name.value}`;
      if (ownFields.has(own)) found.push(`${place}: ${own} is in no service. ${REQUIRE}`);
    });
    return found;
  });
  return [
    ...resolved,
    ...missing,
    ...subschemas.flatMap(unmergeable),
    ...interfaces,
    ...roots,
    ...(documents.some((document) => print(document).includes('@requiresScopes')) ? [SCOPED] : []),
    ...(schema.getSubscriptionType() ? [SUBSCRIBED] : []),
  ];
}

/** A merge without its field or its type would fail in every operation, or never happen. */
function unmergeable(config: SubschemaConfig, at: number): string[] {
  const schemas = [config.schema, new Subschema(config).transformedSchema];
  return Object.entries(config.merge ?? {}).flatMap(([type, { fieldName, entryPoints = [] }]) => {
    const fields = [{ fieldName }, ...entryPoints].flatMap((entry) => entry.fieldName ?? []);
    return [
      ...fields
        .filter((field) => !schemas.some((schema) => schema.getQueryType()?.getFields()[field]))
        .map((field) => `subschemas[${at}] has no Query.${field}, by which ${type} is merged.`),
      ...(schemas.some((schema) => schema.getType(type))
        ? []
        : [`subschemas[${at}] has no type ${type} to merge.`]),
    ];
  });
}

function fieldsOf(definition: DefinitionNode): string[] {
  if (!('fields' in definition)) return [];
  const { name, fields = [] } = definition;
  return fields.map((field) => `${name.value}.${field.name.value}`);
}

const REQUIRE = 'Require the fields of services that it is made of.';

/** For a fragment that is spread nowhere. */
const RULES = specifiedRules.filter((rule) => rule !== NoUnusedFragmentsRule);

const SCOPED =
  'typeDefs has @requiresScopes. Write scopes of added fields and types into adapters.json, beside the schema snapshot.';
const SUBSCRIBED =
  'The schema has subscriptions, which the gateway does not serve. Leave them out.';
