import {
  isNonNullType,
  OperationTypeNode,
  SchemaMetaFieldDef,
  type GraphQLError,
  type GraphQLField,
  type GraphQLObjectType,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from 'graphql';
import {
  collectFields,
  isStreamed,
  type CollectedField,
  type DeferUse,
  type SelectionScope,
} from '../../answers/collect-fields.ts';
import type { Slot } from '../../answers/envelope.ts';
import { shapeOfField, type ShapeScope } from '../../answers/shape.ts';
import type { DerivedField, DerivedKind, Entity, NodeInterface } from '../../schema/derived.ts';
import { argumentsOf } from '../../schema/derived-fields.ts';
import type { Fragments } from '../../selections.ts';
import { forwardedFields } from '../forwarded.ts';
import type { Drains } from '../lists/drains.ts';
import { listField, type FieldParts, type ListField } from '../lists/list-field.ts';
import { nestedPlaceholders, type PageInlining } from '../lists/nested-lists.ts';
import type { FieldValue } from '../output.ts';
import { recordField, recordsField, type FieldPlan } from '../records/record-fields.ts';
import {
  idReader,
  nodeReader,
  representationReader,
  type ReadReference,
} from '../records/record-references.ts';
import type { AcceptedSizes } from '../requests/accepted-sizes.ts';
import { pageCost } from '../requests/page-cost.ts';
import type { RequestWriter, WrittenOperation } from '../requests/request-text.ts';
import type { ReadingTelemetry } from '../telemetry.ts';
import { LOCAL, type LocalFields } from './local-fields.ts';
import { isAllowed, refusedMutation, type RootRules } from './root-rules.ts';
import {
  createVariant,
  rootFieldName,
  type FieldGroup,
  type RootField,
  type Variant,
} from './variant.ts';

/** What all operations are planned with. */
export interface PlanParts extends RootRules {
  /** Those of the query root, by name. */
  readonly derived: ReadonlyMap<string, DerivedField>;
  /** Those of nested lists, as `Type.field`. */
  readonly derivedBelow: ReadonlyMap<string, DerivedField>;
  readonly entities: readonly Entity[];
  readonly nodes: NodeInterface | undefined;
  readonly upstreamType: (servedType: string) => string;
  readonly inlining: PageInlining;
  readonly writer: Pick<RequestWriter, 'schema' | 'withoutNode' | 'toUpstream'>;
  /** The upstream's schema, unchanged. */
  readonly snapshot: GraphQLSchema;
  readonly drains: Drains;
  readonly telemetry: ReadingTelemetry;
  readonly sizes: AcceptedSizes;
  readonly connectionMax: number;
  /** Bytes of memory that the variants of one operation may take. */
  readonly variantBytes: number;
  readonly local: LocalFields;
}

/** What one variant is planned with. */
interface VariantScope {
  readonly operation: OperationDefinitionNode;
  readonly fragments: Fragments;
  /** The values that the sizes of inlined pages depend on; `true` stands for any other value. */
  readonly variables: Readonly<Record<string, unknown>>;
  readonly condition: SelectionScope['condition'];
  readonly defers: boolean;
  /** Whether the operation selects derived fields of nested lists. */
  readonly hasNested: boolean;
  /** Called with the bytes of memory of whatever is kept for the variant. */
  readonly grow: (bytes: number) => void;
}

/** Plans a variant: decides who answers each root field, and writes all requests that this takes. */
export function planVariant(parts: PlanParts, variant: VariantScope): Variant {
  const { schema, drains } = parts;
  const { operation, fragments, variables, condition, defers, grow } = variant;
  const root = schema.getRootType(operation.operation)!;
  const scope: ShapeScope = {
    schema,
    fragments,
    condition,
    defers,
    upstreamType: parts.upstreamType,
    globalIds: parts.nodes,
    placeholderAt: (type, key, nodes) => placeholders.at(type, key, nodes),
  };
  grow(BYTES_OF_VARIANT);
  const writer: RequestWriter = {
    ...parts.writer,
    onWritten: (characters) => grow(BYTES_OF_REQUEST + BYTES_OF_CHARACTER * characters),
    inlinePages: (document, pages) =>
      parts.inlining.inline(document, { ...scope, variables, pages }),
    cost: (document) => pageCost(parts.snapshot, document, condition),
  };
  const written: WrittenOperation = {
    operation: operation.operation,
    ...(operation.name && { name: operation.name }),
    directives: operation.directives ?? [],
    variableDefinitions: operation.variableDefinitions ?? [],
    fragments,
  };
  const isQuery = operation.operation === OperationTypeNode.QUERY;
  // Pages of lists below the result of a mutation are queries, and the directive may be for mutations only.
  const reading: WrittenOperation = isQuery
    ? written
    : { ...written, operation: OperationTypeNode.QUERY, directives: [] };
  const shared = { ...parts, writer, scope, operation: reading };
  const placeholders = nestedPlaceholders(parts.derivedBelow, shared);
  const { selections } = operation.selectionSet;
  const selected = collectFields(scope, root, selections);
  if (selected.refusal) return refusedVariant(selected.refusal);
  const collected = [...selected.fields.values()];
  const planned = collected.map((field) => rootField(parts, { ...variant, shared, root }, field));
  const fields = planned.map((field) =>
    isLoneTypename(field, planned) ? constant(field, JSON.stringify(root.name)) : field,
  );
  const groups = new Map<DeferUse | undefined, FieldGroup>(
    Array.from(
      Map.groupBy(fields, ({ collected: { deferred } }) => deferred),
      ([use, grouped]) => [use, groupOf(grouped)],
    ),
  );
  const nestedAliasBytes = placeholders.aliasBytes();
  const isOneList = fields.length === 1 && fields[0]!.kind === 'list' && !variant.hasNested;

  return createVariant(fields, groups, { nestedAliasBytes, isOneList });

  function groupOf(grouped: readonly RootField[]): FieldGroup {
    const forwarded = grouped.filter(({ kind }) => kind === 'forwarded');
    return {
      fields: grouped,
      forwarded,
      isForwardedOnly: forwarded.length > 0 && forwarded.length === fields.length,
      service: forwarded.length > 0 ? forwardedService(forwarded) : undefined,
      root,
      fragments,
      isQuery,
      drains,
      sizes: parts.sizes,
    };
  }

  function forwardedService(forwarded: readonly RootField[]) {
    const isDeferred = new Set(fields.map(({ collected: { deferred } }) => deferred)).size > 1;
    const nodes = new Set(forwarded.flatMap((field) => field.collected.nodes));
    // Fields that this call skips are sent too, with their directives, unless only the gateway knows them.
    return forwardedFields({
      writer,
      scope,
      operation: written,
      selections,
      isSent: (node) => (isDeferred ? nodes.has(node) : isForwardable(node.name.value)),
      fields: forwarded.map((field) => forwardedShape(scope, root, field)),
    });
  }

  function isForwardable(name: string): boolean {
    if (name === '__typename') return true;
    return isQuery ? !parts.derived.has(name) && !LOCAL.has(name) : isAllowed(parts, name);
  }
}

/* Bytes of memory, measured like those of documents: see operations.ts. */
const BYTES_OF_VARIANT = 6_000;
/** Of a request that was written for it, with the shape and the scanner of its answer. */
const BYTES_OF_REQUEST = 14_000;
const BYTES_OF_CHARACTER = 60;

/** Answers an operation whose root fields depend on a condition that is null. */
function refusedVariant(refusal: GraphQLError): Variant {
  const errors = [{ thrown: refusal, path: undefined }];
  const refused = { data: null, errors, extensions: undefined };
  return { fields: [], answer: () => Promise.resolve(refused) };
}

/** Whether it is the `__typename` of the root and nothing else is requested: then no request is sent for it. */
function isLoneTypename(field: RootField, all: readonly RootField[]): boolean {
  if (field.kind !== 'forwarded' || rootFieldName(field) !== '__typename') return false;
  return !all.some(
    (other) =>
      other.kind === 'forwarded' &&
      rootFieldName(other) !== '__typename' &&
      other.collected.deferred === field.collected.deferred,
  );
}

function constant(field: RootField, text: string): RootField {
  const value: FieldValue = { parts: [text], errors: [] };
  return { ...field, kind: 'read', read: () => value };
}

function forwardedShape(scope: ShapeScope, root: GraphQLObjectType, field: RootField): Slot {
  const { key, collected } = field;
  const name = rootFieldName(field);
  if (name === '__typename') {
    const shape = {
      kind: 'typename',
      upstream: scope.upstreamType(root.name),
      served: root.name,
    } as const;
    return { key, shape, isSilent: false };
  }
  const shape = shapeOfField(scope, root.getFields()[name]!.type, collected.nodes);
  return { key, shape, isSilent: false };
}

interface RootFieldScope extends VariantScope {
  readonly shared: FieldParts;
  readonly root: GraphQLObjectType;
}

/** Decides how a root field is answered: by the service, from a list, or by the gateway itself. */
function rootField(
  parts: PlanParts,
  { operation, shared, root }: RootFieldScope,
  collected: CollectedField,
): RootField {
  const { key, nodes } = collected;
  const name = nodes[0]!.name.value;
  const definition =
    root.getFields()[name] ?? (name === '__schema' ? SchemaMetaFieldDef : undefined);
  const field = { key, collected, isNullable: !definition || !isNonNullType(definition.type) };
  if (operation.operation === OperationTypeNode.MUTATION && definition && !isAllowed(parts, name)) {
    const refused = { parts: undefined, errors: [{ thrown: refusedMutation(name), path: [key] }] };
    return { ...field, kind: 'read', read: () => refused };
  }
  if (name === '__typename') return { ...field, isNullable: false, kind: 'forwarded' };
  if (operation.operation !== OperationTypeNode.QUERY) return { ...field, kind: 'forwarded' };
  const derived = parts.derived.get(name);
  if (derived)
    return {
      ...field,
      ...derivedField(derived, { parts, shared, collected, definition: definition! }),
    };
  if (!LOCAL.has(name)) return { ...field, kind: 'forwarded' };
  return { ...field, kind: 'read', read: parts.local.plan(shared.scope, collected) };
}

type DerivedPlan =
  | { readonly kind: 'list'; readonly list: ListField }
  | { readonly kind: 'read'; readonly read: FieldPlan };

interface DerivedScope {
  readonly parts: PlanParts;
  readonly shared: FieldParts;
  readonly collected: CollectedField;
  readonly definition: GraphQLField<unknown, unknown>;
}

/** How each kind of derived field of the query root is answered. */
const PLANS: {
  readonly [Kind in DerivedKind]: (field: DerivedField<Kind>, scope: DerivedScope) => DerivedPlan;
} = {
  all: (field, { shared, collected }) => {
    // Nothing is deferred in a list that is sent whole: the deferred fields of all its records would have to be kept.
    const isDeferrable = shared.scope.defers === true && isStreamed(shared.scope, collected.nodes);
    const scope = { ...shared.scope, defers: isDeferrable };
    return { kind: 'list', list: listField({ ...shared, scope }, field, collected) };
  },
  connection: (field, { shared, collected }) => ({
    kind: 'list',
    list: listField(shared, field, collected),
  }),
  record: (field, scope) => {
    const read = idReader(field.entity, scope.parts.nodes);
    return { kind: 'read', read: recordField(...recordArguments(field, scope, read)) };
  },
  node: (field, scope) => {
    const read = nodeReader(scope.parts.entities, field.nodes);
    return { kind: 'read', read: recordField(...recordArguments(field, scope, read)) };
  },
  nodes: (field, scope) => {
    const read = nodeReader(scope.parts.entities, field.nodes);
    return { kind: 'read', read: recordsField(...recordArguments(field, scope, read)) };
  },
  entities: (field, scope) => {
    const read = representationReader(field.entities, scope.parts.nodes);
    return { kind: 'read', read: recordsField(...recordArguments(field, scope, read)) };
  },
  service: (_, { parts, shared, collected }) => ({
    kind: 'read',
    read: parts.local.plan(shared.scope, collected),
  }),
};

function derivedField<Kind extends DerivedKind>(field: DerivedField<Kind>, scope: DerivedScope) {
  return PLANS[field.kind](field, scope);
}

function recordArguments(
  field: DerivedField,
  { shared, collected: { key, nodes }, definition }: DerivedScope,
  read: ReadReference,
): Parameters<typeof recordField> {
  const [argument = ''] = argumentsOf(field);
  return [shared, { definition, key, nodes }, { argument, read }];
}
