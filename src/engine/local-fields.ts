import { execute, Kind, type ExecutionResult } from 'graphql';
import type { Call } from './call.ts';
import { rootPart, type PreparedOperation } from './prepared-operation.ts';
import type { SelectedField } from './selected-fields.ts';
import type { Shared } from './shared.ts';

/** Whether the gateway answers a root field without a request, from the schema: introspection and `_service`. */
export function isLocal(field: string): boolean {
  return field === '__schema' || field === '__type' || field === '_service';
}

/** Compiles these fields of an operation. @param selected the fields of its root @returns undefined without any */
export function localFields(
  { schema, offered }: Shared,
  prepared: PreparedOperation,
  selected: readonly SelectedField[],
): ((call: Call) => Readonly<Record<string, unknown>>) | undefined {
  const local = selected.filter(({ name }) => isLocal(name));
  if (local.length === 0) return undefined;
  const rootValue = { _service: { sdl: () => offered.subgraphSdl() } };
  // In the offered schema `_service` may belong to a subschema, whose executor answers it by this plan.
  const parts = [
    { schema, fields: local.filter(({ name }) => name === '_service') },
    { schema: offered.schema, fields: local.filter(({ name }) => name !== '_service') },
  ].map(({ fields, ...part }) => {
    const { definition, fragments } = rootPart(prepared, fields);
    const definitions = [definition, ...fragments.values()];
    return { ...part, rootValue, document: { kind: Kind.DOCUMENT, definitions } } as const;
  });
  return ({ variables }) => {
    const results = parts.map((part) =>
      execute({ ...part, variableValues: { ...variables.sent } }),
    );
    // These fields are answered from the schema at once.
    return Object.assign({}, ...results.map((result) => (result as ExecutionResult).data));
  };
}
