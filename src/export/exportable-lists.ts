import { OperatorMistake } from '../errors.ts';
import { GatewayFailure } from './gateway-failure.ts';
import type { Gateway } from './gateway.ts';

/** An `all…` field of a gateway. */
export interface ExportableList {
  readonly name: string;
  /** As in GraphQL, the fields of a record that need neither a selection nor an argument. */
  readonly selection: string;
  readonly hasId: boolean;
  readonly names: OwnArguments;
  /** The connection of the same records; undefined if there is none. */
  readonly connection: ConnectionField | undefined;
}

export interface ConnectionField {
  readonly name: string;
  /** The name of its argument `after`. */
  readonly after: string;
}

/** The names of the gateway's own arguments of an `all…` field. */
export interface OwnArguments {
  readonly after: string;
  readonly limit: string;
}

export const USUAL_ARGUMENTS: OwnArguments = { after: 'after', limit: 'limit' };

/** @returns undefined if the gateway does not show its schema */
export async function readLists(
  gateway: Gateway,
  signal: AbortSignal,
): Promise<readonly ExportableList[] | undefined> {
  const answer = await gateway.ask(SCHEMA, signal).catch((error: unknown) => {
    if (error instanceof GatewayFailure && error.isInvalid) return undefined;
    throw error;
  });
  if (!answer) return undefined;
  const { queryType, types } = (JSON.parse(answer.raw) as { __schema: Schema }).__schema;
  return queryType.fields.flatMap(({ name, args, type }): ExportableList[] => {
    const record = types.find((one) => one.name === named(type).name);
    const selection = record && selectionOf(record, types);
    // Ours come first: a service with a filter `limit` has ours as `drainLimit`.
    const called = (own: RegExp) => args.find((one) => own.test(one.name))?.name;
    const [after, limit] = [called(/^(after|drainAfter_*)$/), called(/^(limit|drainLimit_*)$/)];
    if (!after || !limit || !isList(type) || selection === undefined) return [];
    const hasId = plainFields(record!).some((field) => field.name === 'id');
    const connection = connectionOf({ name, record: record!.name }, queryType.fields, types);
    return [{ name, selection, hasId, names: { after, limit }, connection }];
  });
}

function connectionOf(
  list: { readonly name: string; readonly record: string },
  fields: readonly Field[],
  types: readonly Type[],
): ConnectionField | undefined {
  const fieldOf = (type: string, field: string) =>
    types.find((one) => one.name === type)?.fields?.find((one) => one.name === field);
  const connections = fields.filter(({ type }) => {
    const edges = fieldOf(named(type).name!, 'edges');
    const node = edges && fieldOf(named(edges.type).name!, 'node');
    return node !== undefined && named(node.type).name === list.record;
  });
  const plain = withoutAll(list.name);
  const usual = connections.find(({ name }) => name.toLowerCase() === `${plain}connection`);
  // Both may have been given other names in adapters.json.
  const found = usual ?? (connections.length === 1 ? connections[0] : undefined);
  const after = found?.args.find(({ name }) => /^(after|connectionAfter_*)$/.test(name));
  return found && after && { name: found.name, after: after.name };
}

/** With SCHEMA_PREFIX, recruitingPersons is drained by recruitingAllPersons. */
function withoutAll(name: string): string {
  return name.replace(/all/i, '').toLowerCase();
}

/** The list that is meant: by the name of its `all…` field, or of the list of the service. @throws OperatorMistake */
export function chooseList(field: string, lists: readonly ExportableList[]): ExportableList {
  const meant =
    lists.find(({ name }) => name === field) ??
    lists.find(({ name }) => withoutAll(name) === field.toLowerCase());
  if (!meant) {
    const names = lists.map(({ name }) => name).join(', ');
    throw new OperatorMistake(
      lists.length === 0
        ? 'The gateway has no list that can be exported; `schema explain` says why.'
        : `There is no list ${JSON.stringify(field)} to export. Choose one of these: ${names}.`,
    );
  }
  return meant;
}

/** Undefined if it has no fields to select. */
function selectionOf(record: Type, types: Schema['types']): string | undefined {
  if (record.fields) {
    return (
      plainFields(record)
        .map(({ name }) => name)
        .join(' ') || '__typename'
    );
  }
  if (record.kind !== 'UNION') return undefined;
  const names = new Set(record.possibleTypes?.map(({ name }) => name));
  const members = types.filter(({ name }) => names.has(name));
  const all = members.flatMap(plainFields);
  const parts = members.map((member) => {
    // Types that differ between the members would make the operation invalid.
    const fields = plainFields(member).filter(({ name, type }) =>
      all.every((other) => other.name !== name || written(other.type) === written(type)),
    );
    return fields.length > 0
      ? ` ... on ${member.name} { ${fields.map(({ name }) => name).join(' ')} }`
      : '';
  });
  return `__typename${parts.join('')}`;
}

function plainFields({ fields }: Type): readonly Field[] {
  return fields?.filter(isPlain) ?? [];
}

function written({ kind, name, ofType }: TypeReference): string {
  return ofType ? `${kind} ${written(ofType)}` : String(name);
}

/** The name that the `all…` field of a list has, unless adapters.json or a prefix gives it another. */
export function usualName(field: string): string {
  return /^all|All[A-Z]/.test(field)
    ? field
    : `all${field.charAt(0).toUpperCase()}${field.slice(1)}`;
}

/** The connection of a list whose gateway does not show its schema. */
export function usualConnection(field: string): ConnectionField {
  const plain = field.replace(/^all(?=[A-Z])/, '').replace(/All(?=[A-Z])/, '');
  return { name: `${plain.charAt(0).toLowerCase()}${plain.slice(1)}Connection`, after: 'after' };
}

interface TypeReference {
  readonly kind: string;
  readonly name: string | null;
  readonly ofType?: TypeReference | null;
}

interface Field {
  readonly name: string;
  readonly args: readonly {
    readonly name: string;
    readonly type: TypeReference;
    readonly defaultValue: string | null;
  }[];
  readonly type: TypeReference;
}

interface Schema {
  readonly queryType: { readonly fields: readonly Field[] };
  readonly types: readonly Type[];
}

interface Type {
  readonly kind: string;
  readonly name: string;
  readonly fields: readonly Field[] | null;
  readonly possibleTypes: readonly { readonly name: string }[] | null;
}

const FIELD = '{ name args { name defaultValue type { kind name } } type { ...Type } }';

/** As many levels as a list of lists of non-null values has. */
const SCHEMA = `query Lists { __schema { queryType { fields ${FIELD} } types { kind name fields ${FIELD} possibleTypes { name } } } }
  fragment Type on __Type {
    kind name ofType { kind name ofType { kind name ofType { kind name ofType { kind name } } } }
  }`;

function named(type: TypeReference): TypeReference {
  return type.ofType ? named(type.ofType) : type;
}

function isList(type: TypeReference): boolean {
  return type.kind === 'LIST' || (type.ofType ? isList(type.ofType) : false);
}

function isPlain({ args, type }: Field): boolean {
  const isNeeded = args.some((arg) => arg.type.kind === 'NON_NULL' && arg.defaultValue === null);
  return !isNeeded && ['SCALAR', 'ENUM'].includes(named(type).kind);
}
