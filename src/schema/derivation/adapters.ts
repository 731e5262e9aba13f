import { isInterfaceType, isNonNullType, specifiedScalarTypes, type GraphQLSchema } from 'graphql';
import {
  fieldAt,
  objectTypesOf,
  type Adapter,
  type NestedAdapter,
  type PagedField,
  type Reach,
} from '../derived.ts';
import { argumentsOf, fieldsOfList } from '../derived-fields.ts';
import { RELAY_PAGE_INFO, ROUTER_TYPES, type RootNames } from '../names.ts';
import { checkOverrides, isMissing } from './check-overrides.ts';
import {
  describeResult,
  findLists,
  identityToWrite,
  isIdentified,
  type FoundList,
} from './lists.ts';
import {
  isGuardOnly,
  OverridesError,
  readOverrides,
  type FieldOverride,
  type GuardEntry,
  type Overrides,
  type TypeOverrides,
} from './overrides.ts';
import { describeReach, reachParent } from './reach-parent.ts';

/**
 * Names the derived fields and types, each name once. If a name is taken, the field is not derived and a warning says
 * so; if adapters.json gave the name, that is a mistake. A list whose records cannot be distinguished gets no
 * connection.
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
  /** The derived fields, with the place in adapters.json that names them; undefined for the usual names. */
  const derived = new Map<string, string | undefined>();

  const of = (parent: string, list: PagedField, override: FieldOverride) => {
    const taken: string[] = [];
    const takeField = (key: 'all' | 'connection', name: string) => {
      const field = `${parent}.${name}`;
      const place = override[key] && `fields.${parent}.${list.name}.${key}`;
      if (!derived.has(field) && !fieldAt(schema, parent, name)) {
        derived.set(field, place);
        return true;
      }
      const mistaken = place ?? derived.get(field);
      if (mistaken)
        mistakes.push(`${mistaken}: ${parent} already has ${name}. Write another name.`);
      else taken.push(`${field} is not derived: a field of that name already exists.`);
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

/** The gateway's arguments in the order of their definition, each with its name if a filter has the usual name. */
const ARGUMENTS = {
  all: { limit: 'drainLimit', after: 'drainAfter' },
  connection: {
    first: 'first',
    after: 'connectionAfter',
    last: 'connectionLast',
    before: 'connectionBefore',
  },
} as const;

/** Names the gateway's arguments, with `_` appended while a filter has the name. */
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
  /** The gateway's arguments that were renamed because of a filter, by `field(argument)`. */
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
  /** What adapters.json says about fields, by their coordinates. */
  readonly fields: ReadonlyMap<string, FieldOverride>;
  /** What adapters.json says about types and fields that the service does not have. */
  readonly guardsOfAdditions: readonly GuardEntry[];
}

/**
 * Decides which adapters are derived from the lists of the schema, and their names. If the upstream already has a field
 * of that name, the field is not derived, and a warning says so.
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
  const overrides = readOverrides(json);
  const guardsOfAdditions = guardsOfMissing(overrides, schema);
  if (hasAdditions) {
    for (const { section, place } of guardsOfAdditions) overrides[section].delete(place);
  }
  const { fields, types } = overrides;
  const lists = findLists(schema, fields);
  const mistakes = [
    ...overrides.mistakes,
    ...checkOverrides(overrides, schema, lists, hasAdditions),
  ];
  const chosen = lists.map((list) => ({ list, choice: choose(list, overrides, schema) }));
  const paged = chosen.flatMap(({ choice }) => (typeof choice === 'string' ? [] : choice.paged));
  const derivedFor = derivedNames(schema, paged, names, types);

  const adapters: Adapter[] = [];
  const nested: NestedAdapter[] = [];
  const reports = chosen.map(({ list, choice }) => {
    if (typeof choice === 'string') return reportOf(list, [choice]);
    const { reach } = choice;
    const override = fields.get(list.coordinate) ?? {};
    const { adapter, why } = derivedFor.of(list.parent.name, choice.paged, override);
    if (reach) nested.push({ ...adapter, reach });
    else adapters.push(adapter);
    const ofIdentity = identityReasons(list, adapter, override, schema);
    return reportOf(list, [...reasons(adapter, override), ...ofIdentity, ...why], adapter, reach);
  });
  const all = [...mistakes, ...derivedFor.mistakes];
  if (all.length > 0) {
    const mayLackAdditions = !hasAdditions && guardsOfAdditions.length > 0;
    throw new OverridesError(all, mayLackAdditions ? NOTHING_ADDED : undefined);
  }
  const { warnings } = derivedFor;
  return { adapters, nested, warnings, reports, types, fields, guardsOfAdditions };
}

/** Programs always say what they add: only commands load a file. */
const NOTHING_ADDED =
  'No gateway.config.ts is loaded. If one adds what the service lacks here, set GATEWAY_CONFIG to its path.';

/** The entries that only say who may read something that the service does not have, and that a company may add. */
function guardsOfMissing({ fields, types }: Overrides, schema: GraphQLSchema): GuardEntry[] {
  const entries = Object.entries({ fields, types }) as ['fields' | 'types', typeof fields][];
  return entries.flatMap(([section, overrides]) =>
    Array.from(overrides, ([place, override]) => ({ section, place, override }))
      .filter((entry) => isGuardOnly(entry.override) && isMissing(schema, entry))
      .map(({ place, override: { scope } }) => ({ section, place, scope })),
  );
}

/** @returns the reason, as text, if nothing is derived */
function choose(
  { coordinate, parent, verdict }: FoundList,
  { fields, types }: Overrides,
  schema: GraphQLSchema,
): { readonly paged: PagedField; readonly reach: Reach | undefined } | string {
  if (typeof verdict === 'string') return `${verdict}.`;
  const { skip, identity, count } = fields.get(coordinate) ?? {};
  if (skip) return 'adapters.json skips it.';
  const paged = {
    ...verdict,
    ...(identity !== undefined && { identity: [[identity]] }),
    ...(count !== undefined && { count }),
  };
  if (parent === schema.getQueryType()) return { paged, reach: undefined };
  if (isInterfaceType(parent)) {
    return `${parent.name} is an interface, and fields are derived only for object types. Request it inside "... on" one of them.`;
  }
  const reach = reachParent(schema, parent, types);
  return typeof reach === 'string' ? reach : { paged, reach };
}

function reportOf(
  { coordinate, givesPages }: FoundList,
  why: readonly string[],
  adapter?: Adapter,
  reach?: Reach,
): ListReport {
  const { all, connection } = adapter ?? {};
  return {
    list: coordinate,
    inPages: givesPages,
    all: all?.field ?? null,
    connection: connection?.field ?? null,
    types: connection ? { connection: connection.type, edge: connection.edge } : null,
    parent: reach ? describeReach(reach) : null,
    renamed: adapter ? renamedArguments(adapter) : {},
    why,
  };
}

function renamedArguments(adapter: Adapter): Record<string, string> {
  return Object.fromEntries(
    fieldsOfList(adapter).flatMap((field) => {
      const usual = Object.keys(ARGUMENTS[field.kind]);
      return argumentsOf(field).flatMap((name, i) =>
        usual[i] === name ? [] : [[`${field.name}(${usual[i]})`, name]],
      );
    }),
  );
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
          `${count} of its pages ${connection ? 'is its totalCount' : 'is compared with what is read'}, as adapters.json says.`,
        ]),
  ];
}

/** Says what identifies its records, where that is not simply their id. */
function identityReasons(
  { coordinate }: FoundList,
  { nodeType, identity }: Adapter,
  override: FieldOverride,
  schema: GraphQLSchema,
): string[] {
  if (override.identity !== undefined) {
    return [`adapters.json identifies its records by ${override.identity}.`];
  }
  const without = objectTypesOf(schema, nodeType).filter((type) => !isIdentified(type, [['id']]));
  if (identity.length > 0) {
    return without.map(
      (type) =>
        `${type.name} has no plain field id: if the list changes meanwhile, some of its records may come twice.`,
    );
  }
  return [
    `it has no connection, because ${nodeType.name} has no plain field id, so that a cursor cannot name a record. ` +
      'If another field identifies a record, write it in adapters.json: ' +
      `${identityToWrite(coordinate, without)}.`,
  ];
}
