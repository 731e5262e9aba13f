import type { SubschemaConfig } from '@graphql-tools/delegate';
import { parseSelectionSet, type IResolvers } from '@graphql-tools/utils';
import {
  GraphQLError,
  isLeafType,
  isObjectType,
  isTypeDefinitionNode,
  isTypeExtensionNode,
  Kind,
  NoUnusedFragmentsRule,
  parse,
  Source,
  specifiedRules,
  specifiedScalarTypes,
  validate,
  visit,
  type DocumentNode,
  type FieldDefinitionNode,
  type GraphQLSchema,
  type SelectionNode,
  type TypeDefinitionNode,
  type TypeExtensionNode,
} from 'graphql';
import { OperatorMistakes } from '../errors.ts';
import { fieldAt, hasFields, typesWithFields } from '../schema/derived.ts';
import type { TypeDefs } from './additions.ts';
import { SUFFIX } from './private-keys.ts';

/** A company's additions, as lists. */
export interface AddedParts {
  /** The name of the file or option, for messages about mistakes. */
  readonly source: string;
  readonly documents: readonly DocumentNode[];
  readonly resolvers: readonly IResolvers[];
  readonly subschemas: readonly SubschemaConfig[];
}

/** @throws OperatorMistake */
export function documentsOf(typeDefs: TypeDefs | undefined, source: string): DocumentNode[] {
  if (typeDefs === undefined) return [];
  if (Array.isArray(typeDefs)) {
    return (typeDefs as readonly TypeDefs[]).flatMap((part) => documentsOf(part, source));
  }
  if (typeof typeDefs !== 'string') return [typeDefs as DocumentNode];
  if (typeDefs.trim() === '') return [];
  try {
    return [parse(new Source(typeDefs, 'typeDefs'))];
  } catch (error) {
    const { message, locations } = error as GraphQLError;
    const line = locations?.[0]?.line;
    throw new OperatorMistakes(source, [
      `typeDefs is not valid SDL${line === undefined ? '' : `, in line ${line}`}: ${withoutDot(message)}.`,
    ]);
  }
}

/** Finds what `stitchSchemas` would silently leave out, or would do in an unexpected way. */
export function mistakesBefore(served: GraphQLSchema, added: AddedParts): string[] {
  const definitions = added.documents
    .flatMap((document) => document.definitions)
    .filter((definition) => isTypeDefinitionNode(definition) || isTypeExtensionNode(definition));
  const types = knownTypes(served, definitions, added.subschemas);
  return [
    ...definitions.flatMap((definition) => mistakesOfDefinition(served, definition, types)),
    ...added.resolvers.flatMap((map) => mistakesOfResolvers(served, map, types)),
    ...fieldsWithoutResolver(served, definitions, added),
    ...added.subschemas.flatMap((subschema, i) => mistakesOfSubschema(served, subschema, i)),
    ...requirements(added).flatMap(({ of, selectionSet }) => {
      const fault = faultOf(selectionSet);
      return fault === undefined ? [] : [invalidSelections(of, fault)];
    }),
  ];
}

/** Finds mistakes that only the stitched schema shows, such as invalid requirements of resolvers and merges. */
export function mistakesAfter(
  served: GraphQLSchema,
  schema: GraphQLSchema,
  added: AddedParts,
): string[] {
  return [
    ...(schema.getSubscriptionType() && !served.getSubscriptionType()
      ? ['The schema has subscriptions, which the gateway does not serve. Leave them out.']
      : []),
    ...namesWithSuffix(schema),
    ...changedFields(served, schema),
    ...requirementMistakes(schema, requirements(added)),
  ];
}

type Definition = TypeDefinitionNode | TypeExtensionNode;

/** The fields of each type; undefined for a type without fields. */
type KnownTypes = ReadonlyMap<string, ReadonlySet<string> | undefined>;

function knownTypes(
  served: GraphQLSchema,
  definitions: readonly Definition[],
  subschemas: readonly SubschemaConfig[],
): KnownTypes {
  const known = new Map<string, Set<string> | undefined>();
  const add = (name: string, fields: readonly string[] | undefined) => {
    const before = known.get(name);
    known.set(name, fields ? new Set([...(before ?? []), ...fields]) : before);
  };
  for (const schema of [served, ...subschemas.map(({ schema: other }) => other)]) {
    for (const type of Object.values(schema.getTypeMap())) {
      add(type.name, 'getFields' in type ? Object.keys(type.getFields()) : undefined);
    }
    // Stitching gives the root types of all schemas the names of the served ones.
    for (const [name, root] of rootPairs(served, schema)) {
      add(name, Object.keys(root.getFields()));
    }
  }
  for (const { name } of specifiedScalarTypes) add(name, undefined);
  const definesMutation = definitions.some(({ name }) => name.value === 'Mutation');
  if (!served.getMutationType() && definesMutation) add('Mutation', []);
  for (const definition of definitions) {
    const name = definition.name.value;
    // A type that is only extended is unknown.
    if (!isTypeDefinitionNode(definition) && !known.has(name)) continue;
    add(name, 'fields' in definition ? (definition.fields ?? []).map(nameOf) : undefined);
  }
  return known;
}

function rootPairs(served: GraphQLSchema, schema: GraphQLSchema) {
  const [query, mutation] = [schema.getQueryType(), schema.getMutationType()];
  return [
    ...(query ? [[served.getQueryType()!.name, query] as const] : []),
    ...(mutation ? [[served.getMutationType()?.name ?? 'Mutation', mutation] as const] : []),
  ];
}

function mistakesOfDefinition(
  served: GraphQLSchema,
  definition: Definition,
  types: KnownTypes,
): string[] {
  const name = definition.name.value;
  const mistakes: string[] = [];
  if (!types.has(name)) {
    mistakes.push(`typeDefs extends ${name}, which is not a type of any schema. Correct the name.`);
  }
  const type = served.getType(name);
  if (type) {
    if (!hasFields(type)) {
      mistakes.push(
        `typeDefs changes ${name}, which the gateway already has. Only its object types and interfaces can be extended.`,
      );
    } else if ('fields' in definition) {
      for (const field of definition.fields ?? []) {
        if (field.name.value in type.getFields()) {
          mistakes.push(
            `typeDefs adds ${name}.${field.name.value}, which the gateway already has. Choose another name.`,
          );
        }
      }
    }
  }
  visit(definition, {
    Directive: ({ name: { value } }) => {
      if (value !== 'requiresScopes') return;
      mistakes.push(
        `typeDefs has @${value} in ${name}. Write scopes of added fields and types into adapters.json, beside the schema snapshot.`,
      );
    },
    NamedType: ({ name: { value } }) => {
      if (types.has(value)) return;
      mistakes.push(
        `typeDefs uses ${value} in ${name}, which is not a type of any schema. Correct the name.`,
      );
    },
  });
  return mistakes;
}

/** Whether this is a special key of a resolver map, such as `__resolveType`, and not a field. */
function isSpecial(field: string): boolean {
  return field.startsWith('__');
}

function mistakesOfResolvers(
  served: GraphQLSchema,
  resolvers: IResolvers,
  types: KnownTypes,
): string[] {
  return Object.entries(resolvers).flatMap(([name, fields]) => {
    if (!types.has(name)) {
      return [`resolvers has ${name}, which is not a type of any schema. Correct the name.`];
    }
    const type = served.getType(name);
    if (type && isLeafType(type)) {
      return [
        `resolvers has ${name}, a type of the gateway whose values are passed on as the service wrote them. Leave it out.`,
      ];
    }
    const known = types.get(name);
    if (!known) return [];
    return Object.keys(fields)
      .filter((field) => !isSpecial(field) && !known.has(field))
      .map(
        (field) =>
          `resolvers has ${name}.${field}, which is not a field of any schema. Add it to typeDefs, or correct its name.`,
      );
  });
}

/** Finds added fields that would always be null. */
function fieldsWithoutResolver(
  served: GraphQLSchema,
  definitions: readonly Definition[],
  { resolvers, subschemas }: AddedParts,
): string[] {
  const schemas = [served, ...subschemas.map(({ schema }) => schema)];
  const isResolved = (type: string, field: string): boolean =>
    resolvers.some((map) => {
      const fields: object = map[type] ?? {};
      return field in fields;
    });
  return definitions.flatMap((definition) => {
    if (
      definition.kind !== Kind.OBJECT_TYPE_DEFINITION &&
      definition.kind !== Kind.OBJECT_TYPE_EXTENSION
    )
      return [];
    const name = definition.name.value;
    const roots = [served.getQueryType()?.name, served.getMutationType()?.name ?? 'Mutation'];
    const known = schemas.map((schema) => schema.getType(name)).filter(isObjectType);
    // The values of a type that only typeDefs has come from its resolvers.
    if (!roots.includes(name) && known.length === 0) return [];
    const types = [name, ...known.flatMap((type) => type.getInterfaces().map(String))];
    return (definition.fields ?? [])
      .map(nameOf)
      .filter(
        (field) =>
          !types.some((type) => isResolved(type, field)) &&
          !known.some((type) => field in type.getFields()),
      )
      .map(
        (field) =>
          `typeDefs adds ${name}.${field}, but resolvers has no ${name}.${field}. Add a resolver for it.`,
      );
  });
}

function mistakesOfSubschema(
  served: GraphQLSchema,
  { schema, merge = {}, transforms = [] }: SubschemaConfig,
  index: number,
): string[] {
  const at = `subschemas[${index}]`;
  // Only the stitched schema shows what transforms make of it.
  if (transforms.length > 0) return [];
  const roots = [
    [served.getQueryType(), schema.getQueryType()],
    [served.getMutationType(), schema.getMutationType()],
  ] as const;
  return [
    ...roots.flatMap(([servedRoot, root]) =>
      Object.keys(root?.getFields() ?? {})
        .filter((field) => servedRoot && field in servedRoot.getFields())
        .map(
          (field) =>
            `${at} has ${root!.name}.${field}, which the gateway already has. Rename or remove it with a transform.`,
        ),
    ),
    ...Object.entries(merge).flatMap(([name, { fieldName }]) => {
      if (!schema.getType(name)) {
        return [`${at}.merge has ${name}, which is not a type of its schema. Correct the name.`];
      }
      if (fieldName === undefined || schema.getQueryType()?.getFields()[fieldName]) return [];
      return [
        `${at}.merge.${name} has the fieldName ${fieldName}, which its schema does not have in Query. Correct the name.`,
      ];
    }),
  ];
}

/**
 * Finds fields whose type another schema changes: operations without added fields are answered by the served schema.
 */
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

function namesWithSuffix(schema: GraphQLSchema): string[] {
  return typesWithFields(schema).flatMap((type) =>
    Object.keys(type.getFields())
      .filter((field) => field.endsWith(SUFFIX))
      .map((field) => `${type.name}.${field} ends with ${SUFFIX}, which is reserved. Rename it.`),
  );
}

/** The fields that a resolver or a merge needs. */
interface Requirement {
  readonly of: string;
  readonly type: string;
  /** Undefined for a merge, whose requirement is not for a single field. */
  readonly field?: string;
  readonly selectionSet: string;
}

export function requirements({
  resolvers,
  subschemas,
}: Pick<AddedParts, 'resolvers' | 'subschemas'>): Requirement[] {
  const ofResolvers = resolvers.flatMap((map) =>
    Object.entries(map).flatMap(([type, fields]) =>
      Object.entries((fields ?? {}) as Readonly<Record<string, unknown>>).flatMap(
        ([field, resolver]) => {
          const { selectionSet } = (resolver ?? {}) as { readonly selectionSet?: unknown };
          return typeof selectionSet === 'string'
            ? [{ of: `resolvers.${type}.${field}`, type, field, selectionSet }]
            : [];
        },
      ),
    ),
  );
  const ofMerges = subschemas.flatMap(({ merge = {} }, i) =>
    Object.entries(merge).flatMap(([type, { selectionSet, fields = {}, entryPoints = [] }]) => {
      const of = `subschemas[${i}].merge.${type}`;
      return [
        ...(selectionSet === undefined ? [] : [{ of, type, selectionSet }]),
        ...Object.entries(fields).flatMap(([field, config]) =>
          config.selectionSet === undefined
            ? []
            : [{ of: `${of}.fields.${field}`, type, field, selectionSet: config.selectionSet }],
        ),
        ...entryPoints.flatMap((entry, n) =>
          entry.selectionSet === undefined
            ? []
            : [{ of: `${of}.entryPoints[${n}]`, type, selectionSet: entry.selectionSet }],
        ),
      ];
    }),
  );
  return [...ofResolvers, ...ofMerges];
}

const RULES = specifiedRules.filter((rule) => rule !== NoUnusedFragmentsRule);

function requirementMistakes(schema: GraphQLSchema, required: readonly Requirement[]): string[] {
  const parsed = required.map(({ selectionSet, ...requirement }) => ({
    ...requirement,
    selections: parseSelectionSet(selectionSet, { noLocation: true }).selections,
  }));
  const invalid = parsed.flatMap(({ of, type, selections }) => {
    const fragment = fragmentOn(type, selections);
    const reserved = reservedAlias(fragment);
    if (reserved !== undefined) {
      return [
        `${of} uses the alias ${reserved} in its selectionSet. Names that end with ${SUFFIX} are reserved.`,
      ];
    }
    const [error] = validate(schema, fragment, RULES);
    return error ? [invalidSelections(of, error.message)] : [];
  });
  if (invalid.length > 0) return invalid;
  // All of them are selected together.
  return [...Map.groupBy(parsed, ({ type }) => type)].flatMap(([type, ofType]) => {
    const all = ofType.flatMap(({ selections }) => selections);
    const [error] = validate(schema, fragmentOn(type, all), RULES);
    if (!error) return [];
    const names = ofType.map(({ of }) => of).join(' and ');
    return [
      `${names} require fields that cannot be selected together: ${withoutDot(error.message)}. Give them aliases in the selectionSet.`,
    ];
  });
}

function invalidSelections(of: string, fault: string): string {
  return `${of} has a selectionSet that is not valid: ${withoutDot(fault)}.`;
}

function faultOf(selectionSet: string): string | undefined {
  try {
    const [definition] = parse(selectionSet, { noLocation: true }).definitions;
    return definition?.kind === Kind.OPERATION_DEFINITION ? undefined : 'it must begin with {';
  } catch (error) {
    return (error as Error).message;
  }
}

function fragmentOn(type: string, selections: readonly SelectionNode[]): DocumentNode {
  return {
    kind: Kind.DOCUMENT,
    definitions: [
      {
        kind: Kind.FRAGMENT_DEFINITION,
        name: { kind: Kind.NAME, value: 'Required' },
        typeCondition: { kind: Kind.NAMED_TYPE, name: { kind: Kind.NAME, value: type } },
        selectionSet: { kind: Kind.SELECTION_SET, selections },
      },
    ],
  };
}

function reservedAlias(fragment: DocumentNode): string | undefined {
  let reserved: string | undefined;
  visit(fragment, {
    Field: ({ alias }) => {
      if (alias?.value.endsWith(SUFFIX)) reserved ??= alias.value;
    },
  });
  return reserved;
}

function withoutDot(message: string): string {
  return message.replace(/\.$/, '');
}

function nameOf({ name }: Pick<FieldDefinitionNode, 'name'>): string {
  return name.value;
}
