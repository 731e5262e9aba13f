import {
  getNamedType,
  isLeafType,
  isObjectType,
  isRequiredArgument,
  Kind,
  type FieldNode,
  type GraphQLCompositeType,
  type GraphQLSchema,
  type SelectionNode,
} from 'graphql';

/**
 * What is selected, silently, to tell records apart: `id` under aliases of our own, since a caller may
 * give the name `id` to another field. Each object type has its own alias, because two types of one
 * union may have ids of different types, which one name cannot hold.
 */
export interface IdentitySelection {
  readonly selections: readonly SelectionNode[];
  /** `Type:id` of a record of the answer; null when it has no id. */
  identityOf(record: unknown): string | null;
}

const ALIAS = '_rsId';

export function identitySelection(
  schema: GraphQLSchema,
  nodeType: GraphQLCompositeType,
): IdentitySelection {
  const objectTypes = isObjectType(nodeType) ? [nodeType] : schema.getPossibleTypes(nodeType);
  const identified = objectTypes.filter((type) => {
    const id = type.getFields()['id'];
    return id && isLeafType(getNamedType(id.type)) && !id.args.some(isRequiredArgument);
  });
  if (isObjectType(nodeType)) {
    return {
      selections: identified.map(() => idUnder(ALIAS)),
      identityOf: (record) => identityFrom(record, nodeType.name, ALIAS),
    };
  }
  const aliases = identified.map((type) => [type.name, `${ALIAS}_${type.name}`] as const);
  return {
    selections: aliases.map(([type, alias]) => ({
      kind: Kind.INLINE_FRAGMENT,
      typeCondition: { kind: Kind.NAMED_TYPE, name: { kind: Kind.NAME, value: type } },
      selectionSet: { kind: Kind.SELECTION_SET, selections: [idUnder(alias)] },
    })),
    identityOf: (record) => {
      for (const [type, alias] of aliases) {
        const identity = identityFrom(record, type, alias);
        if (identity !== null) return identity;
      }
      return null;
    },
  };
}

function idUnder(alias: string): FieldNode {
  return {
    kind: Kind.FIELD,
    name: { kind: Kind.NAME, value: 'id' },
    alias: { kind: Kind.NAME, value: alias },
  };
}

function identityFrom(record: unknown, type: string, alias: string): string | null {
  const id = (record as Record<string, unknown> | null)?.[alias];
  return typeof id === 'string' || typeof id === 'number' ? `${type}:${id}` : null;
}
