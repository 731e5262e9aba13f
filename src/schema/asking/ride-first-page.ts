import {
  BREAK,
  getArgumentValues,
  isNullableType,
  isObjectType,
  Kind,
  TypeInfo,
  visit,
  visitWithTypeInfo,
  type ArgumentNode,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLObjectType,
  type GraphQLSchema,
  type SelectionNode,
} from 'graphql';
import { codedError } from '../../errors.ts';
import type { WantedRides, WriteRides } from './upstream-link.ts';
import { identitySelection } from './identity-selection.ts';
import { field, notEmpty, pageSizeOf } from './page-question.ts';
import type { NestedAdapter } from '../derivation/adapter.ts';
import { idOf } from '../derivation/reach-parent.ts';
import { recordPlaces, type SelectionContext } from './response-places.ts';
import { idAlias, placeAlias, rideAlias } from './ride-names.ts';

export interface RideParts {
  /** The upstream's schema under served names. */
  readonly upstream: GraphQLSchema;
  /** With what is derived; made later than this. */
  readonly served: () => GraphQLSchema;
  readonly adapters: readonly NestedAdapter[];
  readonly connectionMax: number;
}

/** Connections are written out wherever they stand, so fragments in fragments could grow without end. */
const MAX_RIDES = 1_000;

export function createRides(parts: RideParts): WriteRides {
  const { upstream, served, adapters } = parts;
  if (adapters.length === 0) return (document) => document;
  const fields = derivedFields(parts);
  const names = new Set(adapters.flatMap(({ all, connection }) => [all?.field, connection?.field]));

  return (document, variables, rides) => {
    if (!mentions(document, names)) return document;
    const context: RideContext = {
      schema: served(),
      fragments: fragmentsOf(document),
      variables,
      rides,
    };
    const types = new TypeInfo(upstream);
    let written = 0;
    return visit(
      document,
      visitWithTypeInfo(types, {
        SelectionSet: (node) => {
          const parent = types.getParentType();
          const derived = isObjectType(parent) ? fields.get(parent.name) : undefined;
          if (!isObjectType(parent) || !derived) return undefined;
          const isDerived = (selection: SelectionNode) =>
            selection.kind === Kind.FIELD && derived.has(selection.name.value);
          if (!node.selections.some(isDerived)) return undefined;
          const selections = node.selections.flatMap((selection) => {
            const list = selection.kind === Kind.FIELD && derived.get(selection.name.value);
            if (!list) return [selection];
            written += 1;
            if (written > MAX_RIDES) throw tooManyLists();
            return list.ride(selection, context);
          });
          return { ...node, selections: notEmpty([...selections, ...parentId(parent)]) };
        },
      }),
    );
  };
}

interface RideContext extends SelectionContext {
  readonly rides: WantedRides;
}

interface DerivedField {
  /** What stands in the field's place; nothing where its first page does not ride. */
  ride(node: FieldNode, context: RideContext): FieldNode[];
}

function derivedFields({ upstream, adapters, connectionMax }: RideParts) {
  const byParent = new Map<string, Map<string, DerivedField>>();
  for (const adapter of adapters) {
    const { parent, all, connection } = adapter;
    const fields = byParent.get(parent) ?? new Map<string, DerivedField>();
    byParent.set(parent, fields);
    const identity = identitySelection(upstream, adapter.nodeType).selections;
    const items = (alias: string, selections: readonly SelectionNode[]) =>
      field('items', { alias, selections: notEmpty([...identity, ...selections]) });
    const derived = (firstPage: FirstPage, lists: Lists): DerivedField => ({
      ride(node, context) {
        if (!mayRide(adapter, node, context.rides)) return [];
        const args = argumentsOf(node, parent, context);
        const page = args && firstPage(args);
        return page ? [rideOf(adapter, node, page, lists(node, context))] : [];
      },
    });
    if (all) {
      fields.set(
        all.field,
        derived(
          (args) => firstOfAll(args[all.limit], args[all.after]),
          (node) => [items('items', node.selectionSet?.selections ?? [])],
        ),
      );
    }
    if (connection) {
      fields.set(
        connection.field,
        derived(
          (args) =>
            isGiven(args['after']) || isGiven(args[connection.before])
              ? undefined
              : firstOfConnection(args['first'], args[connection.last], connectionMax),
          (node, context) => {
            const places = recordPlaces(connection, context, [node]);
            return places.length > 0
              ? places.map(({ keys, selections }) => items(placeAlias(...keys), selections))
              : [items('items', [])];
          },
        ),
      );
    }
  }
  return byParent;
}

function mayRide(adapter: NestedAdapter, node: FieldNode, rides: WantedRides): boolean {
  if (rides === 'all') return true;
  if (rides === 'safe') return isNullableType(adapter.field.type);
  return !rides.has(aliasOf(adapter, node));
}

function aliasOf({ parent }: NestedAdapter, { alias, name }: FieldNode): string {
  return rideAlias(parent, alias?.value ?? name.value);
}

/** The size of the page that rides; undefined: none rides. */
type FirstPage = (
  args: Readonly<Record<string, unknown>>,
) => { first: number | undefined } | undefined;
type Lists = (node: FieldNode, context: RideContext) => FieldNode[];

function firstOfAll(limit: unknown, after: unknown) {
  // A cursor may point into the middle of a page; that is asked step by step.
  if (isGiven(after)) return undefined;
  if (typeof limit !== 'number') return { first: undefined };
  return limit > 0 ? { first: limit } : undefined;
}

function firstOfConnection(first: unknown, last: unknown, max: number) {
  if (typeof last === 'number') {
    return isGiven(first) || last < 0 || last > max ? undefined : { first: undefined };
  }
  if (typeof first !== 'number') return { first: undefined };
  // `first: 0` looks at one record, like the connection itself.
  return first >= 0 && first <= max ? { first: Math.max(first, 1) } : undefined;
}

function rideOf(
  adapter: NestedAdapter,
  node: FieldNode,
  { first }: { first: number | undefined },
  lists: readonly FieldNode[],
): FieldNode {
  const size = first ?? pageSizeOf(adapter);
  const filters = new Set(adapter.filters.map(({ name }) => name));
  const alias = aliasOf(adapter, node);
  const pageInfo = field('pageInfo', { selections: [field('hasNextPage'), field('endCursor')] });
  return {
    ...field(adapter.name, { alias, selections: [...lists, pageInfo] }),
    arguments: [
      ...(size === undefined ? [] : [firstArgument(size)]),
      ...(node.arguments ?? []).filter(({ name }) => filters.has(name.value)),
    ],
    ...(node.directives && { directives: node.directives }),
  };
}

function firstArgument(size: number): ArgumentNode {
  return {
    kind: Kind.ARGUMENT,
    name: { kind: Kind.NAME, value: 'first' },
    value: { kind: Kind.INT, value: String(size) },
  };
}

/** What is wrong with the arguments is said where the field is resolved; here it only does not ride. */
function argumentsOf(node: FieldNode, parent: string, { schema, variables }: RideContext) {
  const type = schema.getType(parent);
  const definition = isObjectType(type) ? type.getFields()[node.name.value] : undefined;
  try {
    return definition && getArgumentValues(definition, node, { ...variables });
  } catch {
    return undefined;
  }
}

function isGiven(value: unknown): boolean {
  return value !== null && value !== undefined;
}

function parentId(parent: GraphQLObjectType): readonly FieldNode[] {
  return idOf(parent) ? [field('id', { alias: idAlias(parent.name) })] : [];
}

function mentions(document: DocumentNode, names: ReadonlySet<string | undefined>): boolean {
  let found = false;
  visit(document, {
    Field: ({ name }) => {
      found ||= names.has(name.value);
      return found ? BREAK : undefined;
    },
  });
  return found;
}

function fragmentsOf({ definitions }: DocumentNode): Record<string, FragmentDefinitionNode> {
  return Object.fromEntries(
    definitions.flatMap((definition) =>
      definition.kind === Kind.FRAGMENT_DEFINITION ? [[definition.name.value, definition]] : [],
    ),
  );
}

function tooManyLists() {
  return codedError(
    'OPERATION_TOO_COMPLEX',
    `The operation asks for derived lists at more than ${MAX_RIDES} places, fragments counted wherever they stand. Split it.`,
  );
}
