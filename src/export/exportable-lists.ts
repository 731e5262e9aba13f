import { OperatorMistake } from '../errors.ts';
import { GatewayFailure } from './gateway-failure.ts';
import type { Gateway } from './gateway.ts';

/** An `all…` field of a gateway. */
export interface ExportableList {
  readonly name: string;
  /** The fields of a record that need neither a selection nor an argument. */
  readonly plainFields: readonly string[];
  readonly hasId: boolean;
  readonly names: OwnArguments;
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
    // Ours come first: a service with a filter `limit` has ours as `drainLimit`.
    const called = (own: RegExp) => args.find((one) => own.test(one.name))?.name;
    const [after, limit] = [called(/^(after|drainAfter_*)$/), called(/^(limit|drainLimit_*)$/)];
    if (!after || !limit || !isList(type) || !record?.fields) return [];
    const plain = record.fields.filter(isPlain).map((field) => field.name);
    return [{ name, plainFields: plain, hasId: plain.includes('id'), names: { after, limit } }];
  });
}

/** The list that is meant: by the name of its `all…` field, or of the list of the service. @throws OperatorMistake */
export function chooseList(field: string, lists: readonly ExportableList[]): ExportableList {
  const meant =
    lists.find(({ name }) => name === field) ??
    // With SCHEMA_PREFIX, recruitingPersons is drained by recruitingAllPersons.
    lists.find(({ name }) => name.replace(/all/i, '').toLowerCase() === field.toLowerCase());
  if (!meant) {
    const names = lists.map(({ name }) => name).join(', ');
    throw new OperatorMistake(
      lists.length === 0
        ? 'The gateway has no list that can be exported; `schema explain` says why.'
        : `There is no list ${JSON.stringify(field)} to export. Choose one of these: ${names}.`,
    );
  }
  if (meant.plainFields.length > 0) return meant;
  return { ...meant, plainFields: ['__typename'] };
}

/** The name that the `all…` field of a list has, unless adapters.json or a prefix gives it another. */
export function usualName(field: string): string {
  return /^all|All[A-Z]/.test(field)
    ? field
    : `all${field.charAt(0).toUpperCase()}${field.slice(1)}`;
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
  readonly types: readonly { readonly name: string; readonly fields: readonly Field[] | null }[];
}

const FIELD = '{ name args { name defaultValue type { kind name } } type { ...Type } }';

/** As many levels as a list of lists of non-null values has. */
const SCHEMA = `query Lists { __schema { queryType { fields ${FIELD} } types { name fields ${FIELD} } } }
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
