import {
  isAbstractType,
  isInterfaceType,
  isIntrospectionType,
  isObjectType,
  isRequiredArgument,
  isSpecifiedScalarType,
  type GraphQLNamedType,
  type GraphQLObjectType,
  type GraphQLSchema,
} from 'graphql';
import { nearestWord } from '../../words.ts';
import {
  fieldAt,
  hasFields,
  idOf,
  objectTypesOf,
  typesWithFields,
  type PagedField,
} from '../derived.ts';
import { identityMistake, identityToWrite, isCount, type FoundList } from './lists.ts';
import {
  isGuardOnly,
  type FieldOverride,
  type GuardEntry,
  type Overrides,
  type TypeOverride,
} from './overrides.ts';
import { canReturn, idArgument } from './reach-parent.ts';

/**
 * Finds the mistakes in the entries of adapters.json for a schema, and removes the entries that cannot be used.
 *
 * @param hasAdditions whether they may name what the service does not have
 */
export function checkOverrides(
  { fields, types }: Overrides,
  schema: GraphQLSchema,
  lists: readonly FoundList[],
  hasAdditions: boolean,
): string[] {
  const root = schema.getQueryType();
  const listAt = (coordinate: string) => lists.find((list) => list.coordinate === coordinate);
  const pagedAt = (coordinate: string) => {
    const verdict = listAt(coordinate)?.verdict;
    return typeof verdict === 'string' ? undefined : verdict;
  };
  const mayBeAdded = (entry: GuardEntry) => hasAdditions && isMissing(schema, entry);

  const ofFields = Array.from(fields).flatMap(([key, field]) => mistakesOfField(key, field));
  const connected = connectedTypes();
  const ofTypes = Array.from(types).flatMap(([name, type]) => {
    const entry = { ...type, section: 'types', place: name } as const;
    const ofGuard = mistakesOfGuard(entry);
    if (ofGuard.length > 0 || isGuardOnly(type)) return ofGuard;
    const mistakes = mistakesOfType(entry, type);
    if (mistakes.length > 0) types.delete(name);
    return mistakes;
  });
  return [...ofFields, ...ofTypes];

  function mistakesOfField(key: string, field: FieldOverride): string[] {
    const entry = { ...field, section: 'fields', place: key } as const;
    const ofGuard = mistakesOfGuard(entry);
    if (ofGuard.length > 0 || isGuardOnly(field)) return ofGuard;
    const paged = pagedAt(key);
    if (!paged) return [unknownList(entry)];
    const ofIdentity = mistakesOfIdentity(key, paged, field);
    if (ofIdentity.length > 0) fields.set(key, { ...field, identity: undefined });
    return [
      ...mistakesOfCount(key, paged, field),
      ...ofIdentity,
      ...mistakesOfMember(key, paged, field),
    ];
  }

  function mistakesOfGuard(entry: GuardEntry): string[] {
    return entry.scope !== undefined && !mayBeAdded(entry)
      ? guardMistakes(schema, entry, 'the service')
      : [];
  }

  function unknownList(entry: GuardEntry): string {
    const key = entry.place;
    const verdict = listAt(key)?.verdict;
    if (typeof verdict === 'string') {
      return `fields.${key}: this is not a paged field, because ${verdict}. Remove it.`;
    }
    const paged = lists.map(({ coordinate }) => coordinate).filter(pagedAt);
    const instead =
      paged.length > 0
        ? `Write one of ${paged.join(', ')}.`
        : 'This schema has no paged field: remove it.';
    return mayBeAdded(entry)
      ? `fields.${key}: the service has no such list, and an added field takes only "scope". ${instead}`
      : `fields.${key}: there is no such list. ${instead}`;
  }

  function mistakesOfIdentity(
    key: string,
    { nodeType, identity: detected }: PagedField,
    { identity, connection }: FieldOverride,
  ): string[] {
    const nodeTypes = objectTypesOf(schema, nodeType);
    if (identity === undefined) {
      return detected.length === 0 && connection !== undefined
        ? [
            `fields.${key}.connection: it gets no connection, because ${nodeType.name} has no plain field id. ` +
              `Remove it, or write what identifies its records: ${identityToWrite(key, nodeTypes)}.`,
          ]
        : [];
    }
    const mistakes = nodeTypes.flatMap((type) => identityMistake(type, identity) ?? []);
    return [...new Set(mistakes)].map((mistake) => `fields.${key}.identity: ${mistake}`);
  }

  /** The types of the lists that get a connection. */
  function connectedTypes(): ReadonlySet<GraphQLNamedType> {
    return new Set(
      lists.flatMap(({ coordinate, verdict }) => {
        if (typeof verdict === 'string') return [];
        const isNamed = fields.get(coordinate)?.identity !== undefined;
        return isNamed || verdict.identity.length > 0 ? [verdict.nodeType] : [];
      }),
    );
  }

  function mistakesOfType(entry: GuardEntry, override: TypeOverride): string[] {
    const { byId, list } = override;
    const name = entry.place;
    const type = schema.getType(name);
    if (isAbstractType(type) && byId === undefined && list === undefined) {
      return mistakesOfNames(type, override);
    }
    if (!isObjectType(type)) {
      const reason = mayBeAdded(entry)
        ? `the service has no type of that name, and an added type takes only "scope"`
        : 'there is no object type of that name';
      return [`types.${name}: ${reason}. Remove it, or correct the name.`];
    }
    if (!idOf(type)) {
      const lookups = [...(byId ? ['byId'] : []), ...(list ? ['list'] : [])];
      return [
        ...lookups.map((key) => `types.${name}.${key}: ${name} has no plain field id. Remove it.`),
        ...mistakesOfNames(type, override),
      ];
    }
    return [
      ...mistakesOfNames(type, override),
      ...(byId ? mistakesOfById(type, byId) : []),
      ...(list ? mistakesOfList(type, list) : []),
    ];
  }

  /** Whether a name is taken is known only after all names have been chosen. */
  function mistakesOfNames(type: GraphQLNamedType, { connection, edge }: TypeOverride): string[] {
    const { name } = type;
    if (!connected.has(type)) {
      const chosen = Object.entries({ connection, edge }).filter(
        ([, value]) => value !== undefined,
      );
      return chosen.map(
        ([key]) => `types.${name}.${key}: no paged field lists ${name} in a connection. Remove it.`,
      );
    }
    return connection === undefined || connection.endsWith('Connection')
      ? []
      : [
          `types.${name}.connection: ${connection} does not end with Connection, by which clients recognize a connection. ` +
            `Write ${connection}Connection, for example.`,
        ];
  }

  function mistakesOfById(type: GraphQLObjectType, byId: string): string[] {
    const place = `types.${type.name}.byId`;
    const coordinate = `${root?.name}.${byId}`;
    const field = root?.getFields()[byId];
    if (!field) {
      return [`${place}: there is no ${coordinate}. Write a root field, or null to use none.`];
    }
    if (!canReturn(schema, field, type)) {
      return [
        `${place}: ${coordinate} returns ${String(field.type)}. Write one that returns ${type.name}, or a union or interface with it.`,
      ];
    }
    return idArgument(field)
      ? []
      : [
          `${place}: ${coordinate} needs more than an id. Write a field whose only required argument is the id.`,
        ];
  }

  function mistakesOfList(type: GraphQLObjectType, list: string): string[] {
    const place = `types.${type.name}.list`;
    const coordinate = `${root?.name}.${list}`;
    const paged = pagedAt(coordinate);
    if (!paged) {
      return [
        `${place}: there is no paged field ${coordinate}. Write one of the root, or null to use none.`,
      ];
    }
    if (!objectTypesOf(schema, paged.nodeType).includes(type)) {
      return [
        `${place}: ${coordinate} lists ${paged.nodeType.name}. Write one that lists ${type.name}.`,
      ];
    }
    return paged.filters.some(isRequiredArgument)
      ? [
          `${place}: ${coordinate} has required arguments, which a lookup by id cannot provide. Write another list.`,
        ]
      : [];
  }
}

function mistakesOfCount(
  key: string,
  { pageType: page }: PagedField,
  { count }: FieldOverride,
): string[] {
  if (count === undefined || isCount(page.getFields()[count])) return [];
  return [
    `fields.${key}.count: ${page.name} has no field ${count}: Int. Write one with the number of records of all pages.`,
  ];
}

function mistakesOfMember(
  key: string,
  { result }: PagedField,
  { member }: FieldOverride,
): string[] {
  if (result || member === undefined) return [];
  return [`fields.${key}.member: the list returns pages, not a union or interface. Remove it.`];
}

/** Whether an entry names something that a schema lacks, and that could be added to it. */
export function isMissing(schema: GraphQLSchema, { section, place }: GuardEntry): boolean {
  if (section === 'types') return schema.getType(place) === undefined;
  const parts = COORDINATE.exec(place)?.groups;
  return parts !== undefined && !fieldAt(schema, parts['type']!, parts['field']!);
}

/** A schema coordinate, as the GraphQL specification writes it. */
const COORDINATE = /^(?<type>\w+)\.(?<field>\w+)$/;

/**
 * Finds the mistakes of an entry that says who may read something.
 *
 * @param owner what has the schema, for messages
 */
export function guardMistakes(schema: GraphQLSchema, entry: GuardEntry, owner: string): string[] {
  return entry.section === 'types'
    ? guardMistakesOfType(schema, entry, owner)
    : guardMistakesOfField(schema, entry, owner);
}

function guardMistakesOfField(
  schema: GraphQLSchema,
  { place: coordinate }: GuardEntry,
  owner: string,
): string[] {
  const place = `fields.${coordinate}`;
  const parts = COORDINATE.exec(coordinate)?.groups;
  if (!parts) {
    return [`${place}: this is not a field. Write Type.field.`];
  }
  const { type: typeName = '', field: fieldName = '' } = parts;
  const type = schema.getType(typeName);
  if (!hasFields(type)) {
    const known = typesWithFields(schema).map(({ name }) => name);
    return [`${place}: there is no type ${typeName} with fields. ${suggestion(typeName, known)}`];
  }
  if (isInterfaceType(type)) {
    const fields = schema.getPossibleTypes(type).map(({ name }) => `${name}.${fieldName}`);
    return [
      `${place}.scope: ${typeName} is an interface. Write the scope at the fields of its types: ${fields.join(', ')}.`,
    ];
  }
  const fields = type.getFields();
  if (fields[fieldName]) return [];
  return [
    `${place}: ${owner} has no field ${typeName}.${fieldName}. ${suggestion(fieldName, Object.keys(fields))} ` +
      'Fields that the gateway derives have the scopes of the field that they are derived from.',
  ];
}

function guardMistakesOfType(
  schema: GraphQLSchema,
  { place: name }: GuardEntry,
  owner: string,
): string[] {
  const type = schema.getType(name);
  if (!type || isSpecifiedScalarType(type) || isIntrospectionType(type)) {
    const known = Object.keys(schema.getTypeMap()).filter((other) => !other.startsWith('__'));
    return [`types.${name}: ${owner} has no such type. ${suggestion(name, known)}`];
  }
  if (isObjectType(type)) return [];
  const instead = isAbstractType(type)
    ? `Write it at its types: ${schema.getPossibleTypes(type).join(', ')}.`
    : 'Write it at the fields that have this type.';
  return [`types.${name}.scope: only object types and fields have scopes. ${instead}`];
}

function suggestion(word: string, known: readonly string[]): string {
  const meant = nearestWord(word, known);
  if (meant !== undefined) return `Was ${meant} meant?`;
  return known.length > 0 && known.length <= 20
    ? `Write one of ${known.join(', ')}.`
    : 'Correct the name, or remove it.';
}
