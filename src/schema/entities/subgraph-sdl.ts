import {
  isInputObjectType,
  Kind,
  lexicographicSortSchema,
  parse,
  print,
  printSchema,
  visit,
  type ConstDirectiveNode,
  type GraphQLSchema,
} from 'graphql';
import type { Entity } from '../derivation/entity.ts';

/**
 * The SDL that a supergraph is composed of (Federation 2 subgraph specification). What every subgraph has is
 * left out, and so are directives for operations: a router does not pass them on.
 */
export function subgraphSdl(
  schema: GraphQLSchema,
  { entities, pageInfo }: { entities: readonly Entity[]; pageInfo: string },
): string {
  const keys = new Map(
    entities.map(({ type, lookup }) => [type.name, keyOf(lookup !== undefined)]),
  );
  const root = schema.getQueryType()?.name;
  const document = visit(parse(printSchema(lexicographicSortSchema(schema))), {
    DirectiveDefinition: () => null,
    ScalarTypeDefinition: ({ name }) => (OWN_TYPES.has(name.value) ? null : false),
    UnionTypeDefinition: ({ name }) => (OWN_TYPES.has(name.value) ? null : false),
    ObjectTypeDefinition: (node) => {
      const { name, directives = [], fields = [] } = node;
      if (OWN_TYPES.has(name.value)) return null;
      const key = keys.get(name.value);
      if (key) return { ...node, directives: [...directives, key] };
      if (name.value === pageInfo) return { ...node, directives: [...directives, SHAREABLE] };
      if (name.value !== root) return false;
      return { ...node, fields: fields.filter((field) => !OWN_FIELDS.has(field.name.value)) };
    },
  });
  const hasOneOf = Object.values(schema.getTypeMap()).some(
    (type) => isInputObjectType(type) && type.isOneOf,
  );
  return `${hasOneOf ? `${LINK}\n${ONE_OF}` : LINK}\n${print(document)}\n`;
}

const LINK = `extend schema
  @link(url: "https://specs.apollo.dev/federation/v2.3", import: ["@key", "@shareable"])
`;
/** Composition refuses it without, unlike the others that GraphQL has itself. */
const ONE_OF = `directive @oneOf on INPUT_OBJECT
`;

const OWN_TYPES = new Set(['_Any', '_Entity', '_Service']);
const OWN_FIELDS = new Set(['_entities', '_service']);

const SHAREABLE: ConstDirectiveNode = {
  kind: Kind.DIRECTIVE,
  name: { kind: Kind.NAME, value: 'shareable' },
};

function keyOf(isResolvable: boolean): ConstDirectiveNode {
  return {
    kind: Kind.DIRECTIVE,
    name: { kind: Kind.NAME, value: 'key' },
    arguments: [
      {
        kind: Kind.ARGUMENT,
        name: { kind: Kind.NAME, value: 'fields' },
        value: { kind: Kind.STRING, value: 'id' },
      },
      ...(isResolvable
        ? []
        : [
            {
              kind: Kind.ARGUMENT as const,
              name: { kind: Kind.NAME as const, value: 'resolvable' },
              value: { kind: Kind.BOOLEAN as const, value: false },
            },
          ]),
    ],
  };
}
