import { isNonNullType, specifiedScalarTypes, type GraphQLSchema } from 'graphql';
import type { PagedField } from './find-paged-fields.ts';
import type { TypeOverrides } from './reach-parent.ts';
import { RELAY_PAGE_INFO, type RootNames } from './root-names.ts';
import { ROUTER_TYPES } from './router-fields.ts';

/** What the types of a connection are called. */
export interface ConnectionTypes {
  readonly type: string;
  readonly edge: string;
  /** Why they are not called after the node alone. */
  readonly why: readonly string[];
}

/**
 * Names the connection types of each kind of record after the node: `PersonConnection` and `PersonEdge`. All
 * lists of one kind share them.
 *
 * - Where one node is listed both as `[Node!]` and as `[Node]`, those of the second kind are called `Nullable…`,
 *   since their edges promise less.
 * - Where the service has a type of one of the two names, both are called `RelayPerson…`; where that is taken as
 *   well, `RelayRelayPerson…`. (A name that did not end with `Connection` would be none to Relay.)
 * - What adapters.json says is taken as it is; a name that is taken is a mistake then.
 *
 * @param lists all that get adapters: they decide together whether a node is of two kinds
 */
export function connectionTypeNames(
  schema: GraphQLSchema,
  lists: readonly PagedField[],
  names: RootNames,
  overrides: TypeOverrides,
) {
  const mistakes: string[] = [];
  const ofKind = new Map<string, ConnectionTypes>();
  const given = new Set([names.type(RELAY_PAGE_INFO), ...ROUTER_TYPES, ...BUILT_IN]);
  const isTaken = (name: string) => given.has(name) || schema.getType(name) !== undefined;

  const choose = (list: PagedField): ConnectionTypes => {
    const { nodeType } = list;
    const said = overrides.get(nodeType.name) ?? {};
    const kind = hasTwoKinds(list, lists) ? 'Nullable' : '';
    const written = (key: 'connection' | 'edge', name: string) => {
      const free = kind === '' ? name : names.type(kind + names.unprefixed(name));
      if (isTaken(free)) {
        mistakes.push(
          `types.${nodeType.name}.${key}: there is a type ${free} already. Write another name.`,
        );
      }
      given.add(free);
      return free;
    };
    const type = said.connection && written('connection', said.connection);
    const edge = said.edge && written('edge', said.edge);
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
        given.add(types.type).add(types.edge);
        return { ...types, why };
      }
      const owner = schema.getType(taken) ? 'The service has' : 'There is';
      why.push(`${owner} a type ${taken} already.`);
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

/** Of the names of scalars a schema knows only those that it uses. */
const BUILT_IN = specifiedScalarTypes.map(({ name }) => name);

function hasTwoKinds({ nodeType, recordType }: PagedField, lists: readonly PagedField[]): boolean {
  return (
    !isNonNullType(recordType) &&
    lists.some((other) => other.nodeType === nodeType && isNonNullType(other.recordType))
  );
}
