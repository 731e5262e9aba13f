import {
  OperationTypeNode,
  type FieldNode,
  type GraphQLError,
  type GraphQLObjectType,
} from 'graphql';
import { collectFields, type DeferUse } from '../../answers/collect-fields.ts';
import type { Slot } from '../../answers/envelope.ts';
import { shapeOfField, type ShapeScope } from '../../answers/shape.ts';
import { forwardedFields } from '../forwarded/forwarded-fields.ts';
import { nestedPlaceholders } from '../lists/nested-lists.ts';
import type { FieldValue } from '../output.ts';
import { placesAtRoot } from '../requests/field-places.ts';
import { pageCost } from '../requests/page-cost.ts';
import type { RequestWriter, WrittenOperation } from '../requests/request-text.ts';
import { reduceRoot, type RootSelections } from '../requests/root-selections.ts';
import { answerForwarded, answerGroup, type FieldGroup } from './answer-group.ts';
import { LOCAL } from './local-fields.ts';
import { rootField } from './root-field.ts';
import { checkBelowRoot, isAllowed } from './root-rules.ts';
import {
  rootFieldName,
  type PlanParts,
  type RootField,
  type Variant,
  type VariantParts,
} from './variant.ts';

/** Plans a variant: decides who answers each root field, and writes all requests that this takes. */
export function planVariant(parts: PlanParts, variant: VariantParts): Variant {
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
  const placeholders = nestedPlaceholders(parts.nested, shared);
  const asked: RootSelections = { selections: operation.selectionSet.selections, fragments };
  const placesOf = placesAtRoot(asked, scope);
  const selected = collectFields(scope, root, asked.selections);
  if (selected.refusal) return refusedVariant(selected.refusal);
  const collected = [...selected.fields.values()];
  checkBelowRoot(parts, collected, root, fragments);
  const planned = collected.map((field) =>
    rootField(parts, { ...variant, shared, root, placesOf }, field),
  );
  const fields = planned.map((field) =>
    isLoneTypename(field, planned) ? constant(field, JSON.stringify(root.name)) : field,
  );
  const groups = new Map<DeferUse | undefined, FieldGroup>(
    Array.from(
      Map.groupBy(fields, ({ collected: { deferred } }) => deferred),
      ([use, some]) => [use, groupOf(some)],
    ),
  );
  const nestedAliasBytes = placeholders.aliasBytes();
  const isOneList = fields.length === 1 && fields[0]!.kind === 'list' && !variant.hasNested;

  return {
    fields,
    answer: (call, use, given) => {
      // Of nested lists, only how many records they may have together is known before their parents are read.
      if (nestedAliasBytes > 0 && !use) call.held.expect(nestedAliasBytes * call.drainBudget.max);
      const group = groups.get(use);
      if (!group) return NOTHING;
      if (isOneList) call.stopSharing();
      return group.isForwardedOnly ? answerForwarded(group, call) : answerGroup(group, call, given);
    },
  };

  function groupOf(some: readonly RootField[]): FieldGroup {
    const own = some.filter(({ kind }) => kind === 'forwarded');
    return {
      fields: some,
      forwarded: own,
      isForwardedOnly: own.length > 0 && own.length === fields.length,
      service: own.length > 0 ? forwardedService(own) : undefined,
      root,
      fragments,
      isQuery,
      drains,
      sizes: parts.sizes,
    };
  }

  function forwardedService(own: readonly RootField[]) {
    const isDeferred = new Set(fields.map(({ collected: { deferred } }) => deferred)).size > 1;
    const ownNodes = new Set(own.flatMap(({ collected: { nodes } }) => nodes));
    // Fields that this call skips are sent too, with their directives, unless only the gateway knows them.
    const isSent = (node: FieldNode) =>
      isDeferred ? ownNodes.has(node) : isForwardable(node.name.value);
    const { selections, fragments: sent } = reduceRoot(asked, {
      field: (node) => (isSent(node) ? [node] : []),
      fragment: (node) => node,
    });
    const shapes = own.map((field) => forwardedShape(scope, root, field));
    return forwardedFields({
      writer,
      scope,
      operation: { ...written, fragments: sent },
      selections,
      fields: shapes,
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

const NOTHING = Promise.resolve({ data: [], errors: [], extensions: undefined, deferred: [] });

/** Answers an operation whose root fields depend on a condition that is null. */
function refusedVariant(refusal: GraphQLError): Variant {
  const errors = [{ thrown: refusal, path: undefined }];
  const refused = { data: null, errors, extensions: undefined, deferred: [] };
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
