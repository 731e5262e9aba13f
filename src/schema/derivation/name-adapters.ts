import {
  isInterfaceType,
  isNonNullType,
  isObjectType,
  specifiedScalarTypes,
  type GraphQLSchema,
} from 'graphql';
import type { Adapter, FieldOverride, PagedField, TypeOverrides } from '../derived.ts';
import { RELAY_PAGE_INFO, type RootNames } from '../names/root-names.ts';
import { ROUTER_TYPES } from '../names/served-names.ts';

/**
 * Names the derived fields and types, each name once. If a name is taken, the field is not derived and a warning says
 * so; if adapters.json gave the name, that is a mistake. A list whose records cannot be told apart gets no connection.
 *
 * @param lists all paged fields that get adapters: together they decide the names of the connection types
 */
export function derivedNames(
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
    const derived = (name: string) => (isRoot ? names.derived(name) : name);
    const all = {
      field: override.all ?? derived(`all${capitalized(plain)}`),
      ...freeArguments(list, { limit: 'drainLimit', after: 'drainAfter' }),
    };
    const connectionField = override.connection ?? derived(`${plain}Connection`);
    const hasAll = takeField('all', all.field);
    const isConnected = hasIdentity(list) && takeField('connection', connectionField);
    const named = isConnected ? types.of(list) : undefined;
    const connection = named && {
      field: connectionField,
      type: named.type,
      edge: named.edge,
      ...freeArguments(list, {
        after: 'connectionAfter',
        last: 'connectionLast',
        before: 'connectionBefore',
      }),
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

/**
 * Our own arguments are renamed if a filter has the same name: `limit` to `drainLimit`, `last` to `connectionLast`
 * and so on, with `_` appended as long as that is taken too.
 */
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

  const choose = (list: PagedField): ConnectionTypes => {
    const { nodeType } = list;
    const override = overrides.get(nodeType.name) ?? {};
    const kind = hasTwoKinds(list, lists) ? 'Nullable' : '';
    const given = (key: 'connection' | 'edge', name: string) => {
      const ofThisKind = kind === '' ? name : names.type(kind + names.unprefixed(name));
      if (isTaken(ofThisKind)) {
        mistakes.push(
          `types.${nodeType.name}.${key}: a type ${ofThisKind} already exists. Write another name.`,
        );
      }
      used.add(ofThisKind);
      return ofThisKind;
    };
    const type = override.connection && given('connection', override.connection);
    const edge = override.edge && given('edge', override.edge);
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
    const types = ofKind.get(kind) ?? choose(list);
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
