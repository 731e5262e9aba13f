import {
  isInterfaceType,
  isNonNullType,
  isObjectType,
  specifiedScalarTypes,
  type GraphQLSchema,
  isAbstractType,
  isRequiredArgument,
  type GraphQLNamedType,
  type GraphQLObjectType,
} from 'graphql';
import { z } from 'zod';
import { OperatorMistake } from '../../errors.ts';
import {
  type Adapter,
  type FieldOverride,
  type Guard,
  type PagedField,
  type TypeOverrides,
  idOf,
  type FieldPath,
  type TypeOverride,
  type NestedAdapter,
  type Reach,
} from '../derived.ts';
import { RELAY_PAGE_INFO, type RootNames, ROUTER_TYPES } from '../names.ts';
import { argumentsOf, fieldsOfList, reportOf } from '../derived-fields.ts';
import { guardMistakes, isMissing, type GuardEntry } from './guards.ts';
import {
  isCount,
  type FoundList,
  identityToWrite,
  identityMistake,
  findLists,
  isIdentified,
  describeResult,
} from './lists.ts';
import { canReturn, idArgument, describeReach, reachParent } from './reach-parent.ts';

/**
 * Names the derived fields and types, each name once. If a name is taken, the field is not derived and a warning says
 * so; if adapters.json gave the name, that is a mistake. A list whose records cannot be told apart gets no connection.
 *
 * @param lists all paged fields that get adapters: together they decide the names of the connection types
 */
function derivedNames(
  schema: GraphQLSchema,
  lists: readonly PagedField[],
  names: RootNames,
  overrides: TypeOverrides,
) {
  const warnings: string[] = [];
  const types = connectionTypeNames(schema, lists.filter(hasIdentity), names, overrides);
  const { mistakes } = types;
  const fields = new Map<string, Set<string>>();
  /** Where in adapters.json each name was given. */
  const origins = new Map<string, string>();
  const fieldsOf = (parent: string) => {
    const known = fields.get(parent) ?? fieldNames(schema, parent);
    fields.set(parent, known);
    return known;
  };

  const of = (parent: string, list: PagedField, override: FieldOverride) => {
    const taken: string[] = [];
    const takeField = (key: 'all' | 'connection', name: string) => {
      const isGiven = override[key] !== undefined;
      const place = `fields.${parent}.${list.name}.${key}`;
      if (!fieldsOf(parent).has(name)) {
        fieldsOf(parent).add(name);
        if (isGiven) origins.set(`${parent}.${name}`, place);
        return true;
      }
      const origin = isGiven ? place : origins.get(`${parent}.${name}`);
      if (origin) mistakes.push(`${origin}: ${parent} already has ${name}. Write another name.`);
      else taken.push(`${parent}.${name} is not derived: a field of that name already exists.`);
      return false;
    };
    const isRoot = parent === schema.getQueryType()?.name;
    const plain = isRoot ? names.upstream(list.name) : list.name;
    const inType = (name: string) => (isRoot ? names.derived(name) : name);
    const all = {
      field: override.all ?? inType(`all${capitalized(plain)}`),
      ...freeArguments(list, ARGUMENTS.all),
    };
    const connectionField = override.connection ?? inType(`${plain}Connection`);
    const hasAll = takeField('all', all.field);
    const isConnected = hasIdentity(list) && takeField('connection', connectionField);
    const named = isConnected ? types.of(list) : undefined;
    const connection = named && {
      field: connectionField,
      type: named.type,
      edge: named.edge,
      ...freeArguments(list, ARGUMENTS.connection),
    };
    warnings.push(...taken);
    const adapter: Adapter = {
      ...list,
      parent,
      all: hasAll ? all : undefined,
      connection,
      size: override.size,
      page: override.page,
    };
    return { adapter, why: [...(named?.why ?? []), ...taken] };
  };
  return { of, warnings, mistakes };
}

/** An edge needs a cursor, and a cursor names its record. */
function hasIdentity({ identity }: PagedField): boolean {
  return identity.length > 0;
}

function fieldNames(schema: GraphQLSchema, parent: string): Set<string> {
  const type = schema.getType(parent);
  const hasFields = isObjectType(type) || isInterfaceType(type);
  return new Set(hasFields ? Object.keys(type.getFields()) : []);
}

/** The gateway's arguments in the order of the definition, with the name of each if a filter of the list has the usual one. */
const ARGUMENTS = {
  all: { limit: 'drainLimit', after: 'drainAfter' },
  connection: {
    first: 'first',
    after: 'connectionAfter',
    last: 'connectionLast',
    before: 'connectionBefore',
  },
} as const;

/** Names the gateway's arguments, with `_` appended as long as filters have both names. */
function freeArguments<Name extends string>({ filters }: PagedField, names: Record<Name, string>) {
  const taken = new Set(filters.map(({ name }) => name));
  const free = Object.entries<string>(names).map(([usual, instead]) => {
    let name = taken.has(usual) ? instead : usual;
    while (taken.has(name)) name += '_';
    return [usual, name];
  });
  return Object.fromEntries(free) as Record<Name, string>;
}

/** The names of the types of a connection. */
interface ConnectionTypes {
  readonly type: string;
  readonly edge: string;
  /** Why they are not named after the node alone. */
  readonly why: readonly string[];
}

/**
 * Names the connection types of each kind of record after the node: `PersonConnection` and `PersonEdge`. All lists of
 * one kind share them.
 *
 * - If a node is listed both as `[Node!]` and as `[Node]`, the types of the second kind are named `Nullable…`, because
 *   their edges promise less.
 * - If the service has a type of one of the two names, both are named `RelayPerson…`; if that is taken too,
 *   `RelayRelayPerson…`. (Relay recognizes a connection by its name, which must end with `Connection`.)
 * - Names in adapters.json are used unchanged; if such a name is taken, that is a mistake.
 *
 * @param lists all paged fields that get adapters: together they decide whether a node has two kinds
 */
function connectionTypeNames(
  schema: GraphQLSchema,
  lists: readonly PagedField[],
  names: RootNames,
  overrides: TypeOverrides,
) {
  const mistakes: string[] = [];
  const ofKind = new Map<string, ConnectionTypes>();
  const used = new Set([names.type(RELAY_PAGE_INFO), ...ROUTER_TYPES, ...BUILT_IN]);
  const isTaken = (name: string) => used.has(name) || schema.getType(name) !== undefined;

  const typesFor = (list: PagedField): ConnectionTypes => {
    const { nodeType } = list;
    const override = overrides.get(nodeType.name) ?? {};
    const kind = hasTwoKinds(list, lists) ? 'Nullable' : '';
    const claimed = (key: 'connection' | 'edge', name: string) => {
      const ofThisKind = kind === '' ? name : names.type(kind + names.unprefixed(name));
      if (isTaken(ofThisKind)) {
        mistakes.push(
          `types.${nodeType.name}.${key}: a type ${ofThisKind} already exists. Write another name.`,
        );
      }
      used.add(ofThisKind);
      return ofThisKind;
    };
    const type = override.connection && claimed('connection', override.connection);
    const edge = override.edge && claimed('edge', override.edge);
    const why: string[] = [];
    for (let node = kind + names.unprefixed(nodeType.name); ; node = `Relay${node}`) {
      const types = {
        type: type ?? names.type(`${node}Connection`),
        edge: edge ?? names.type(`${node}Edge`),
      };
      const taken =
        (type === undefined && isTaken(types.type) && types.type) ||
        (edge === undefined && isTaken(types.edge) && types.edge);
      if (!taken) {
        used.add(types.type).add(types.edge);
        return { ...types, why };
      }
      const owner = schema.getType(taken) ? 'The service' : 'The gateway';
      why.push(`${owner} already has a type ${taken}.`);
    }
  };

  const of = (list: PagedField): ConnectionTypes => {
    const kind = String(list.recordType);
    const types = ofKind.get(kind) ?? typesFor(list);
    ofKind.set(kind, types);
    return types;
  };
  return { of, mistakes };
}

/** Listed here because a schema knows only those built-in scalars that it uses. */
const BUILT_IN = specifiedScalarTypes.map(({ name }) => name);

function hasTwoKinds({ nodeType, recordType }: PagedField, lists: readonly PagedField[]): boolean {
  return (
    !isNonNullType(recordType) &&
    lists.some((other) => other.nodeType === nodeType && isNonNullType(other.recordType))
  );
}

function capitalized(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1);
}

/** The checked content of adapters.json, by which the operator overrides what detection decides. */
interface AdapterOverrides {
  /** By paged field, for example `Query.persons`. */
  readonly fields: ReadonlyMap<string, FieldOverride>;
  readonly types: TypeOverrides;
}

/** Lists every mistake in adapters.json, each with its correction. */
export class OverridesError extends OperatorMistake {
  override name = 'OverridesError';
  readonly #mistakes: readonly string[];
  readonly #advice: string | undefined;
  /**
   * @param advice for all of them, as a sentence
   * @param file what has them
   */
  constructor(
    mistakes: readonly string[],
    advice?: string,
    file = 'adapters.json, beside the schema snapshot,',
  ) {
    const many = mistakes.length === 1 ? 'a mistake' : `${mistakes.length} mistakes`;
    super(
      [
        `${file} has ${many}:`,
        ...mistakes.map((mistake) => `- ${mistake}`),
        ...(advice === undefined ? [] : [advice]),
      ].join('\n'),
    );
    this.#mistakes = mistakes;
    this.#advice = advice;
  }

  /** The same with the path of the file, for where there are several. */
  in(path: string): OverridesError {
    return new OverridesError(this.#mistakes, this.#advice, path);
  }
}

/** Checks the content of adapters.json, as it was read, against the schema. */
function checkOverrides(
  { fields, types, mistakes: ofShape }: ReadOverrides,
  schema: GraphQLSchema,
  lists: readonly FoundList[],
  hasAdditions: boolean,
): { overrides: AdapterOverrides; mistakes: readonly string[] } {
  const mistakes = [...ofShape];
  const paged = lists
    .filter(({ verdict }) => 'paged' in verdict)
    .map(({ parent, name }) => `${parent.name}.${name}`);
  for (const [key, field] of fields) {
    const entry = { ...field, section: 'fields', place: key } as const;
    const mayBeAdded = hasAdditions && isMissing(schema, entry);
    if (hasGuard(field) && !mayBeAdded) {
      const ofGuard = guardMistakes(schema, entry, SERVICE);
      mistakes.push(...ofGuard);
      if (ofGuard.length > 0) continue;
    }
    if (isGuardOnly(field)) continue;
    const list = lists.find(({ parent, name }) => `${parent.name}.${name}` === key);
    if (!list || 'why' in list.verdict) {
      mistakes.push(unknownList(key, lists, paged, mayBeAdded));
      continue;
    }
    mistakes.push(...mistakesOfCount(key, list.verdict.paged, field));
    const ofIdentity = mistakesOfIdentity(schema, key, list.verdict.paged, field);
    mistakes.push(...ofIdentity);
    if (ofIdentity.length > 0) fields.set(key, { ...field, identity: undefined });
  }
  const connected = connectedTypes(lists, fields);
  for (const { parent, name, verdict } of lists) {
    const isResult = 'why' in verdict || verdict.paged.result !== undefined;
    if (!isResult && fields.get(`${parent.name}.${name}`)?.member !== undefined) {
      mistakes.push(
        `fields.${parent.name}.${name}.member: the list returns pages, not a union or interface. Remove it.`,
      );
    }
  }
  for (const [name, type] of types) {
    const entry = { ...type, section: 'types', place: name } as const;
    const mayBeAdded = hasAdditions && isMissing(schema, entry);
    if (hasGuard(type) && !mayBeAdded) {
      const ofGuard = guardMistakes(schema, entry, SERVICE);
      mistakes.push(...ofGuard);
      if (ofGuard.length > 0 || isGuardOnly(type)) continue;
    }
    const ofType = mistakesOfType(schema, name, type, { lists, connected, mayBeAdded });
    mistakes.push(...ofType);
    if (ofType.length > 0) types.delete(name);
  }
  return { overrides: { fields, types }, mistakes };
}

const SERVICE = 'the service';

/** Those of every gateway: docs/authentication.md. */
const OPERATION_SCOPES: ReadonlySet<string> = new Set(['read', 'drain', 'write', 'router']);

const NAME = z
  .string()
  .regex(/^(?!__|_rs)[_A-Za-z]\w*$/, 'must be a GraphQL name that begins neither with __ nor _rs');

const PATH = z
  .string()
  .regex(/^[_A-Za-z]\w*(\.[_A-Za-z]\w*)*$/, 'must be names of fields joined by dots')
  .transform((path): FieldPath => path.split('.'));

/** As OAuth writes it (RFC 6749, 3.3), without what separates the scopes of an API key. */
const SCOPE = z
  .string()
  .regex(
    /^[!#-*\-.-[\]-~]+$/,
    'must be a scope: printable ASCII without space, comma, +, " and \\',
  );
const GUARD = {
  scope: SCOPE.refine((scope) => !OPERATION_SCOPES.has(scope), {
    message:
      'must not be read, drain, write or router, which say what operations a caller may send',
  }).optional(),
  tags: z
    .array(
      z
        .string()
        .regex(
          /^[_A-Za-z][\w/-]{0,127}$/,
          'must be letters, digits, _, - and /, beginning with a letter',
        ),
    )
    .min(1)
    .optional(),
};
const FIELD = z.strictObject({
  skip: z.boolean().optional(),
  all: NAME.optional(),
  connection: NAME.optional(),
  size: z.int().positive().optional(),
  page: z.int().positive().optional(),
  identity: z.array(PATH).min(1).optional(),
  count: NAME.nullable().optional(),
  member: NAME.optional(),
  after: NAME.optional(),
  ...GUARD,
});
const TYPE = z.strictObject({
  byId: NAME.nullable().optional(),
  list: NAME.nullable().optional(),
  connection: NAME.optional(),
  edge: NAME.optional(),
  ...GUARD,
});
const FILE = z.strictObject({
  fields: z.record(z.string(), FIELD).optional(),
  types: z.record(z.string(), TYPE).optional(),
});

/** The keys allowed at each depth, to suggest in place of an unknown one. */
const KEYS: Readonly<Record<string, string>> = {
  '': keysOf(FILE),
  fields: keysOf(FIELD),
  types: keysOf(TYPE),
};

function keysOf({ shape }: z.ZodObject): string {
  const keys = Object.keys(shape).map((key) => `"${key}"`);
  return `${keys.slice(0, -1).join(', ')} and ${keys.at(-1)}`;
}

interface ReadOverrides {
  readonly fields: Map<string, FieldOverride>;
  readonly types: Map<string, TypeOverride>;
  readonly mistakes: readonly string[];
}

/**
 * Reads adapters.json, whatever the schema.
 *
 * @param json undefined if the file does not exist
 */
function readOverrides(json: unknown): ReadOverrides {
  const read = FILE.safeParse(json ?? {});
  const { fields, types } = (json ?? {}) as Record<string, unknown>;
  const mistakes = (read.error?.issues ?? []).map((issue) => {
    const place = issue.path.join('.');
    if (issue.code !== 'unrecognized_keys') return `${place || 'The file'}: ${issue.message}.`;
    const unknown = issue.keys.map((key) => `"${key}"`).join(', ');
    return `${place || 'The file'}: ${unknown} is unknown. Write ${KEYS[String(issue.path[0] ?? '')]}.`;
  });
  return { fields: entriesOf(fields, FIELD), types: entriesOf(types, TYPE), mistakes };
}

/** The scopes that adapters.json gives to types, fields and arguments, whatever the schema. */
export function scopesIn(json: unknown): readonly string[] {
  const { fields, types } = readOverrides(json);
  const scopes = [...fields.values(), ...types.values()].map(({ scope }) => scope);
  return [...new Set(scopes)].filter((scope) => scope !== undefined);
}

/** The entries that can be read, even if others cannot: all mistakes are reported together. */
function entriesOf<Entry extends object>(record: unknown, shape: z.ZodType<Entry>) {
  const entries = typeof record === 'object' && record !== null ? Object.entries(record) : [];
  return new Map(
    entries.flatMap(([key, entry]) => {
      const { data } = shape.safeParse(entry);
      return data === undefined ? [] : [[key, data] as const];
    }),
  );
}

/** Takes out the entries for what the service does not have, and a company may add. */
function takeGuardsOfAdditions(read: ReadOverrides, schema: GraphQLSchema): GuardEntry[] {
  const taken = guardsOfMissing(read, schema);
  for (const { section, place } of taken) read[section].delete(place);
  return taken;
}

function guardsOfMissing({ fields, types }: ReadOverrides, schema: GraphQLSchema): GuardEntry[] {
  const entries = [
    ...Array.from(fields, ([place, guard]) => ({ ...guard, section: 'fields', place }) as const),
    ...Array.from(types, ([place, guard]) => ({ ...guard, section: 'types', place }) as const),
  ];
  return entries
    .filter(
      ({ section, place, ...entry }) => isGuardOnly(entry) && isMissing(schema, { section, place }),
    )
    .map(({ section, place, scope, tags }) => ({ section, place, scope, tags }));
}

function hasGuard({ scope, tags }: Guard): boolean {
  return scope !== undefined || tags !== undefined;
}

/** Whether an entry says only who may read a field. It need not be a list then. */
function isGuardOnly({ scope, tags, ...others }: FieldOverride | TypeOverride): boolean {
  return (
    hasGuard({ scope, tags }) &&
    Object.values(others).every((value: unknown) => value === undefined)
  );
}

/** @param mayBeAdded whether the name may be that of an added field */
function unknownList(
  key: string,
  lists: readonly FoundList[],
  paged: readonly string[],
  mayBeAdded: boolean,
): string {
  const list = lists.find(({ parent, name }) => `${parent.name}.${name}` === key);
  if (list && 'why' in list.verdict) {
    return `fields.${key}: this is not a paged field, because ${list.verdict.why}. Remove it.`;
  }
  const instead =
    paged.length > 0
      ? `Write one of ${paged.join(', ')}.`
      : 'This schema has no paged field: remove it.';
  return mayBeAdded
    ? `fields.${key}: the service has no such list, and an added field takes ${ONLY_GUARD}. ${instead}`
    : `fields.${key}: there is no such list. ${instead}`;
}

const ONLY_GUARD = `only ${Object.keys(GUARD)
  .map((key) => `"${key}"`)
  .join(' and ')}`;

function mistakesOfCount(
  key: string,
  { pageType: page }: PagedField,
  { count }: FieldOverride,
): string[] {
  if (count == null || isCount(page.getFields()[count])) return [];
  return [
    `fields.${key}.count: ${page.name} has no field ${count}: Int. Write one with the number of records of all pages, ` +
      'or null if it has none.',
  ];
}

function mistakesOfIdentity(
  schema: GraphQLSchema,
  key: string,
  { nodeType, identity: known }: PagedField,
  { identity, connection }: FieldOverride,
): string[] {
  const types = (isAbstractType(nodeType) ? schema.getPossibleTypes(nodeType) : [nodeType]).filter(
    (type) => isObjectType(type),
  );
  if (!identity) {
    return known.length === 0 && connection !== undefined
      ? [
          `fields.${key}.connection: it gets no connection, because ${nodeType.name} has no plain field id. ` +
            `Remove it, or write what identifies its records: ${identityToWrite(key, types)}.`,
        ]
      : [];
  }
  return identity.flatMap((path) => {
    const mistakes = types.flatMap((type) => identityMistake(type, path) ?? []);
    return [...new Set(mistakes)].map((mistake) => `fields.${key}.identity: ${mistake}`);
  });
}

/** The types of the lists that get a connection. */
function connectedTypes(
  lists: readonly FoundList[],
  fields: ReadonlyMap<string, FieldOverride>,
): ReadonlySet<GraphQLNamedType> {
  return new Set(
    lists.flatMap(({ parent, name, verdict }) => {
      if ('why' in verdict) return [];
      const { nodeType, identity } = verdict.paged;
      const identifying = fields.get(`${parent.name}.${name}`)?.identity ?? identity;
      return identifying.length > 0 ? [nodeType] : [];
    }),
  );
}

function mistakesOfType(
  schema: GraphQLSchema,
  name: string,
  { byId, list, ...types }: TypeOverride,
  {
    lists,
    connected,
    mayBeAdded,
  }: {
    readonly lists: readonly FoundList[];
    readonly connected: ReadonlySet<GraphQLNamedType>;
    readonly mayBeAdded: boolean;
  },
): string[] {
  const type = schema.getType(name);
  if (isAbstractType(type) && byId === undefined && list === undefined) {
    return mistakesOfNames(type, types, connected);
  }
  if (!isObjectType(type)) {
    const none = mayBeAdded
      ? `the service has no type of that name, and an added type takes ${ONLY_GUARD}`
      : 'there is no object type of that name';
    return [`types.${name}: ${none}. Remove it, or correct the name.`];
  }
  const lookups = [...(byId ? ['byId'] : []), ...(list ? ['list'] : [])];
  if (!idOf(type)) {
    return [
      ...lookups.map((key) => `types.${name}.${key}: ${name} has no plain field id. Remove it.`),
      ...mistakesOfNames(type, types, connected),
    ];
  }
  return [
    ...mistakesOfNames(type, types, connected),
    ...(byId ? mistakesOfById(schema, type, byId) : []),
    ...(list ? mistakesOfList(schema, type, list, lists) : []),
  ];
}

/** Whether a name is taken is known only after all names have been chosen. */
function mistakesOfNames(
  type: GraphQLNamedType,
  { connection, edge }: TypeOverride,
  connected: ReadonlySet<GraphQLNamedType>,
): string[] {
  const chosen = Object.entries({ connection, edge }).filter(([, name]) => name !== undefined);
  if (!connected.has(type)) {
    return chosen.map(
      ([key]) =>
        `types.${type.name}.${key}: no paged field lists ${type.name} in a connection. Remove it.`,
    );
  }
  return connection === undefined || connection.endsWith('Connection')
    ? []
    : [
        `types.${type.name}.connection: ${connection} does not end with Connection, by which clients recognize a connection. ` +
          `Write ${connection}Connection, for example.`,
      ];
}

function mistakesOfById(schema: GraphQLSchema, type: GraphQLObjectType, byId: string): string[] {
  const place = `types.${type.name}.byId`;
  const root = schema.getQueryType();
  const field = root?.getFields()[byId];
  if (!field) {
    return [
      `${place}: there is no ${root?.name}.${byId}. Write a root field, or null to use none.`,
    ];
  }
  if (!canReturn(schema, field, type)) {
    return [
      `${place}: ${root?.name}.${byId} returns ${String(field.type)}. Write one that returns ${type.name}, or a union or interface with it.`,
    ];
  }
  return idArgument(field)
    ? []
    : [
        `${place}: ${root?.name}.${byId} needs more than an id. Write a field whose only required argument is the id.`,
      ];
}

function mistakesOfList(
  schema: GraphQLSchema,
  type: GraphQLObjectType,
  list: string,
  lists: readonly FoundList[],
): string[] {
  const place = `types.${type.name}.list`;
  const root = schema.getQueryType();
  const verdict = lists.find(({ parent, name }) => parent === root && name === list)?.verdict;
  if (!verdict || 'why' in verdict) {
    return [
      `${place}: there is no paged field ${root?.name}.${list}. Write one of the root, or null to use none.`,
    ];
  }
  const { nodeType, filters } = verdict.paged;
  if (nodeType !== type && !(isAbstractType(nodeType) && schema.isSubType(nodeType, type))) {
    return [
      `${place}: ${root?.name}.${list} lists ${nodeType.name}. Write one that lists ${type.name}.`,
    ];
  }
  return filters.some(isRequiredArgument)
    ? [
        `${place}: ${root?.name}.${list} has required arguments, which a lookup by id cannot provide. Write another list.`,
      ]
    : [];
}

/** What was derived from one list, and why, for `schema explain`. */
export interface ListReport {
  /** For example `Vacancy.candidates`. */
  readonly list: string;
  /** Whether its type looks like a page: an object with `items` and `pageInfo`. */
  readonly inPages: boolean;
  readonly all: string | null;
  readonly connection: string | null;
  /** The names of the connection types; null without a connection. */
  readonly types: { readonly connection: string; readonly edge: string } | null;
  /** How the parent is reached again; null at the root, or if it cannot be. */
  readonly parent: string | null;
  /** Arguments of ours that were renamed because of a filter, by `field(argument)`. */
  readonly renamed: Readonly<Record<string, string>>;
  readonly why: readonly string[];
}

export interface AdapterPlan {
  /** The adapters of the query root. */
  readonly adapters: readonly Adapter[];
  readonly nested: readonly NestedAdapter[];
  /** Why fields were not derived, for warnings at the start. */
  readonly warnings: readonly string[];
  readonly reports: readonly ListReport[];
  /** What adapters.json decides about types. */
  readonly types: TypeOverrides;
  /** What adapters.json says about fields and arguments, by their coordinates. */
  readonly fields: ReadonlyMap<string, FieldOverride>;
  /** What it says about types, fields and arguments that the service does not have. */
  readonly guardsOfAdditions: readonly GuardEntry[];
}

/**
 * Decides which adapters are derived from the lists of the schema, and their names. A name that the upstream uses
 * itself is not derived, with a warning.
 *
 * @param schema the upstream under served names, so with `PageInfo` already renamed
 * @param json the parsed adapters.json
 * @param hasAdditions whether it may name what the service does not have
 * @throws OverridesError
 */
export function planAdapters(
  schema: GraphQLSchema,
  names: RootNames,
  json?: unknown,
  hasAdditions = false,
): AdapterPlan {
  const read = readOverrides(json);
  const guardsOfAdditions = hasAdditions ? takeGuardsOfAdditions(read, schema) : [];
  const mayLackAdditions = !hasAdditions && guardsOfMissing(read, schema).length > 0;
  const lists = findLists(schema, read.fields);
  const { overrides, mistakes } = checkOverrides(read, schema, lists, hasAdditions);
  const chosen = lists.map((list) => {
    const verdict = choose(list, overrides, schema);
    return { list, verdict, override: overrides.fields.get(keyOf(list)) ?? {} };
  });
  const paged = chosen.flatMap(({ verdict }) => ('paged' in verdict ? verdict.paged : []));
  const derivedFor = derivedNames(schema, paged, names, overrides.types);

  const adapters: Adapter[] = [];
  const nested: NestedAdapter[] = [];
  const reports = chosen.map(({ list, verdict, override }) => {
    if ('why' in verdict) return notDerived(list, verdict.why);
    const { paged: field, reach } = verdict;
    const { adapter, why } = derivedFor.of(list.parent.name, field, override);
    if (reach) nested.push({ ...adapter, reach });
    else adapters.push(adapter);
    const ofIdentity = identityReasons(adapter, override, schema);
    return derived(adapter, reach, [...reasons(adapter, override), ...ofIdentity, ...why]);
  });
  const all = [...mistakes, ...derivedFor.mistakes];
  if (all.length > 0) throw new OverridesError(all, mayLackAdditions ? NOTHING_ADDED : undefined);
  return {
    adapters,
    nested,
    warnings: derivedFor.warnings,
    reports,
    ...overrides,
    guardsOfAdditions,
  };
}

/** Programs always say what they add: only commands load a file. */
const NOTHING_ADDED =
  'No gateway.config.ts is loaded. If one adds what the service lacks here, set GATEWAY_CONFIG to its path.';

type Choice =
  { readonly paged: PagedField; readonly reach: Reach | undefined } | { readonly why: string };

function choose(list: FoundList, overrides: AdapterOverrides, schema: GraphQLSchema): Choice {
  const { parent, verdict } = list;
  if ('why' in verdict) return { why: `${verdict.why}.` };
  const { skip, identity, count } = overrides.fields.get(keyOf(list)) ?? {};
  if (skip) return { why: 'adapters.json skips it.' };
  const paged = {
    ...verdict.paged,
    ...(identity && { identity }),
    ...(count !== undefined && { count: count ?? undefined }),
  };
  if (parent === schema.getQueryType()) return { paged, reach: undefined };
  if (isInterfaceType(parent)) {
    return {
      why: `${parent.name} is an interface, and fields are derived only for object types. Request it inside "... on" one of them.`,
    };
  }
  const reach = reachParent(schema, parent, overrides.types);
  return typeof reach === 'string' ? { why: reach } : { paged, reach };
}

function keyOf({ parent, name }: FoundList): string {
  return `${parent.name}.${name}`;
}

function notDerived(list: FoundList, why: string): ListReport {
  return {
    list: keyOf(list),
    inPages: list.givesPages,
    all: null,
    connection: null,
    types: null,
    parent: null,
    renamed: {},
    why: [why],
  };
}

function derived(adapter: Adapter, reach: Reach | undefined, why: readonly string[]): ListReport {
  const fields = fieldsOfList(adapter);
  const renamed = fields.flatMap((field) => {
    const names = argumentsOf(field);
    const usual = Object.keys(ARGUMENTS[field.kind]);
    return names.flatMap((name, i) =>
      usual[i] === name ? [] : [[`${field.name}(${usual[i]})`, name]],
    );
  });
  return Object.assign(
    {
      list: `${adapter.parent}.${adapter.name}`,
      inPages: true,
      all: null,
      connection: null,
      types: null,
      parent: reach ? describeReach(reach) : null,
      renamed: Object.fromEntries(renamed) as Record<string, string>,
      why,
    },
    ...fields.map(reportOf),
  ) as ListReport;
}

function reasons(
  { after, recordType, nodeType, result, count, connection }: Adapter,
  override: FieldOverride,
): string[] {
  const kind = isNonNullType(recordType) ? nodeType.name : `${nodeType.name} or null`;
  return [
    `it takes first and ${after.name}, and returns pages of ${kind}.`,
    ...(result ? [describeResult(result, 'an error of the list')] : []),
    ...(override.all || override.connection ? ['adapters.json names it.'] : []),
    ...(count === undefined
      ? []
      : [
          `${count} of its pages ${connection ? 'is its totalCount' : 'is compared with what is read'}, once it has proved to count all pages.`,
        ]),
  ];
}

/** Says what identifies its records, where that is not simply their id. */
function identityReasons(
  { parent, name, nodeType, identity }: Adapter,
  override: FieldOverride,
  schema: GraphQLSchema,
): string[] {
  if (override.identity) {
    const paths = identity.map((path) => path.join('.')).join(', ');
    return [`adapters.json identifies its records by ${paths}.`];
  }
  const types = isAbstractType(nodeType) ? schema.getPossibleTypes(nodeType) : [nodeType];
  const without = types.filter((type) => isObjectType(type) && !isIdentified(type, [['id']]));
  if (identity.length > 0) {
    return without.map(
      (type) =>
        `${type.name} has no plain field id: if the list changes meanwhile, some of its records may come twice.`,
    );
  }
  return [
    `it has no connection, because ${nodeType.name} has no plain field id, so that a cursor cannot name a record. ` +
      'If other fields together identify a record, write them in adapters.json: ' +
      `${identityToWrite(`${parent}.${name}`, without)}.`,
  ];
}
