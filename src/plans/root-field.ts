import { isNonNullType, OperationTypeNode, type GraphQLObjectType } from 'graphql';
import { isStreamed, type CollectedField } from '../answers/collect-fields.ts';
import { listField } from './list-field.ts';
import { LOCAL, localField } from './local-field.ts';
import type { RootField } from './operation-answer.ts';
import type { FieldParts, PlanParts, VariantParts } from './plan-parts.ts';
import { entitiesField, recordField } from './record-field.ts';
import { isAllowed, refusedMutation } from './root-rules.ts';

/** Tells of a field of the root by whom it is answered. */
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
    // In a list that comes whole nothing is put off: it would have to be kept for each of its records.
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
  const asked = { definition: definition!, key, nodes };
  if (name === '_entities') {
    const byName = new Map(parts.entities.map((entity) => [entity.type.name, entity]));
    return { ...field, kind: 'read', read: entitiesField(shared, byName, asked) };
  }
  const entity = parts.entities.find((each) => each.field === name)!;
  return { ...field, kind: 'read', read: recordField(shared, entity, asked) };
}
