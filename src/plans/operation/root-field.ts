import {
  executeSync,
  isNonNullType,
  Kind,
  OperationTypeNode,
  type DocumentNode,
  type GraphQLObjectType,
} from 'graphql';
import {
  collectFields,
  isStreamed,
  selectionsOf,
  type CollectedField,
} from '../../answers/collect-fields.ts';
import type { ShapeScope } from '../../answers/shape.ts';
import type { Call } from '../call.ts';
import { listField, type FieldParts } from '../lists/list-field.ts';
import type { FieldValue } from '../output.ts';
import {
  recordField,
  recordsField,
  type FieldPlan,
  type SelectedField,
} from '../records/record-fields.ts';
import { idReader, nodeReader, representationReader } from '../records/record-references.ts';
import { isAllowed, refusedMutation } from './root-rules.ts';
import type { PlanParts, RootField, VariantParts } from './variant.ts';

/** Decides how a root field is answered: by the service, from a list, or by the gateway itself. */
export function rootField(
  parts: PlanParts,
  {
    operation,
    fragments,
    shared,
    root,
  }: VariantParts & { readonly shared: FieldParts; readonly root: GraphQLObjectType },
  collected: CollectedField,
): RootField {
  const { key, nodes } = collected;
  const name = nodes[0]!.name.value;
  const definition = root.getFields()[name];
  const field = { key, collected, isNullable: !definition || !isNonNullType(definition.type) };
  if (operation.operation === OperationTypeNode.MUTATION && definition && !isAllowed(parts, name)) {
    const refused = { parts: undefined, errors: [{ thrown: refusedMutation(name), path: [key] }] };
    return { ...field, kind: 'read', read: () => refused };
  }
  if (name === '__typename') return { ...field, isNullable: false, kind: 'forwarded' };
  if (operation.operation !== OperationTypeNode.QUERY) return { ...field, kind: 'forwarded' };
  if (LOCAL.has(name) && (name !== '_service' || parts.derived.has(name))) {
    const read = localField(parts, { operation, fragments, collected, scope: shared.scope });
    return { ...field, kind: 'read', read };
  }
  for (const adapter of parts.adapters) {
    const kind =
      adapter.all?.field === name
        ? 'all'
        : adapter.connection?.field === name
          ? 'connection'
          : undefined;
    if (!kind) continue;
    // Nothing is deferred in a list that is sent whole: the deferred fields of all its records would have to be kept.
    const defers =
      shared.scope.defers === true && (kind === 'connection' || isStreamed(shared.scope, nodes));
    const scope = { ...shared.scope, defers };
    return {
      ...field,
      kind: 'list',
      list: listField({ ...shared, scope }, adapter, { kind, key, nodes }),
    };
  }
  if (!parts.derived.has(name)) return { ...field, kind: 'forwarded' };
  const selected = { definition: definition!, key, nodes };
  return { ...field, kind: 'read', read: readRecords(parts, shared, selected, name) };
}

function readRecords(
  { entities, nodes }: PlanParts,
  shared: FieldParts,
  selected: SelectedField,
  name: string,
): FieldPlan {
  if (name === '_entities') {
    const read = representationReader(entities, nodes);
    return recordsField(shared, selected, { argument: 'representations', read });
  }
  if (name === nodes?.field) {
    return recordField(shared, selected, { argument: 'id', read: nodeReader(entities, nodes) });
  }
  if (name === nodes?.list) {
    return recordsField(shared, selected, { argument: 'ids', read: nodeReader(entities, nodes) });
  }
  const entity = entities.find(({ field }) => field === name)!;
  return recordField(shared, selected, { argument: 'id', read: idReader(entity, nodes) });
}

/** The fields that the gateway answers from its own schema. */
export const LOCAL = new Set(['__schema', '__type', '_service']);

/** Answers introspection and `_service`. The value is made once if it depends on no variables. */
function localField(
  { schema, sdl }: PlanParts,
  {
    operation,
    fragments,
    collected,
    scope,
  }: Pick<VariantParts, 'operation' | 'fragments'> & {
    collected: CollectedField;
    scope: ShapeScope;
  },
): (call: Call) => FieldValue {
  const { key, nodes } = collected;
  if (nodes[0]!.name.value === '_service') {
    const type = schema.getType('_Service') as GraphQLObjectType;
    const members = [...collectFields(scope, type, selectionsOf(nodes)).values()].map(
      (field) =>
        `${JSON.stringify(field.key)}:${JSON.stringify(field.nodes[0]!.name.value === 'sdl' ? sdl() : type.name)}`,
    );
    const value: FieldValue = { parts: [`{${members.join(',')}}`], errors: [] };
    return () => value;
  }
  const document: DocumentNode = {
    kind: Kind.DOCUMENT,
    definitions: [
      { ...operation, selectionSet: { kind: Kind.SELECTION_SET, selections: nodes } },
      ...fragments.values(),
    ],
  };
  const read = (variableValues: Readonly<Record<string, unknown>>): FieldValue => {
    const { data } = executeSync({ schema, document, variableValues });
    return { parts: [JSON.stringify(data?.[key] ?? null)], errors: [] };
  };
  if ((operation.variableDefinitions ?? []).length > 0)
    return ({ variables }) => read(variables.values);
  let once: FieldValue | undefined;
  return () => (once ??= read({}));
}
