import {
  isNonNullType,
  OperationTypeNode,
  SchemaMetaFieldDef,
  type GraphQLObjectType,
} from 'graphql';
import { isStreamed, type CollectedField } from '../../answers/collect-fields.ts';
import { listField, type FieldParts } from '../lists/list-field.ts';
import {
  recordField,
  recordsField,
  type FieldPlan,
  type SelectedField,
} from '../records/record-fields.ts';
import { idReader, nodeReader, representationReader } from '../records/record-references.ts';
import type { placesAtRoot } from '../requests/field-places.ts';
import { LOCAL } from './local-fields.ts';
import { isAllowed, refusedMutation } from './root-rules.ts';
import type { PlanParts, RootField, VariantParts } from './variant.ts';

interface RootFieldParts extends VariantParts {
  readonly shared: FieldParts;
  readonly root: GraphQLObjectType;
  readonly placesOf: ReturnType<typeof placesAtRoot>;
}

/** Decides how a root field is answered: by the service, from a list, or by the gateway itself. */
export function rootField(
  parts: PlanParts,
  { operation, shared, root, placesOf }: RootFieldParts,
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
  if (LOCAL.has(name) && (name !== '_service' || parts.derived.has(name))) {
    return { ...field, kind: 'read', read: parts.local.plan(shared.scope, collected) };
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
      list: listField({ ...shared, scope }, adapter, { kind, key, nodes, places: placesOf(nodes) }),
    };
  }
  if (!parts.derived.has(name)) return { ...field, kind: 'forwarded' };
  const selected = { definition: definition!, key, nodes, places: placesOf(nodes) };
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
