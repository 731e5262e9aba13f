import { executeSync, Kind, type DocumentNode, type GraphQLObjectType } from 'graphql';
import { collectFields, selectionsOf, type CollectedField } from '../answers/collect-fields.ts';
import type { ShapeScope } from '../answers/shape.ts';
import type { FieldValue } from './all-field.ts';
import type { Call } from './call.ts';
import type { PlanParts, VariantParts } from './plan-parts.ts';

/** Answered by the gateway alone, from its own schema. */
export const LOCAL = new Set(['__schema', '__type', '_service']);

/** Introspection, and the SDL for routers: the same in every call, unless variables are in it. */
export function localField(
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
