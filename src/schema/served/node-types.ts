import { MapperKind, mapSchema } from '@graphql-tools/utils';
import {
  GraphQLID,
  GraphQLNonNull,
  isInterfaceType,
  isNonNullType,
  parse,
  visit,
  type DocumentNode,
  type GraphQLSchema,
} from 'graphql';
import type { NodeInterface } from '../derived.ts';

/** The type definitions of Relay's Node, and of the service's own ids. `withGlobalIds` has to follow. */
export function nodeTypes(
  { type, field, list, recordId, ids, implementedBy }: NodeInterface,
  schema: GraphQLSchema,
): DocumentNode {
  const fields = Array.from(ids, ([name, own]) => {
    const kind = isInterfaceType(schema.getType(name)) ? 'interface' : 'type';
    return `
extend ${kind} ${name} ${implementedBy.has(name) ? `implements ${type} ` : ''}{
  """The id in the service. Arguments of the service take this id, and not the global \`id\`."""
  ${recordId}: ${String(own)}
}`;
  });
  const document = parse(`
"""A record that can be fetched again by its \`id\`, whatever its type is."""
interface ${type} {
  """${GLOBAL_ID}"""
  id: ID!
}

extend type ${schema.getQueryType()!.name} {
  """The record with this global id; null if it does not exist."""
  ${field}(
    """The \`id\` of a record."""
    id: ID!
  ): ${type}
  """The records with these global ids, in their order; null for a record that does not exist."""
  ${list}(
    """The \`id\` of each record."""
    ids: [ID!]!
  ): [${type}]!
}
${fields.join('\n')}`);
  // Stitching needs the list, which the parser of graphql 17 leaves out if it is empty.
  return visit(document, { InterfaceTypeDefinition: (node) => ({ ...node, interfaces: [] }) });
}

const GLOBAL_ID = 'An opaque id that is unique among the records of all types.';

/** Gives the `id` of these types the type and the meaning of a global id. */
export function withGlobalIds(schema: GraphQLSchema, { ids }: NodeInterface): GraphQLSchema {
  return mapSchema(schema, {
    [MapperKind.COMPOSITE_FIELD]: (field, name, typeName) => {
      const own = name === 'id' ? ids.get(typeName) : undefined;
      if (!own) return field;
      const type = isNonNullType(own) ? new GraphQLNonNull(GraphQLID) : GraphQLID;
      return { ...field, type, description: GLOBAL_ID };
    },
  });
}
