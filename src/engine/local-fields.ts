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
  const service = local.filter(({ name }) => name === '_service');
  const introspection = local.filter((field) => !service.includes(field));
  const rootValue = { _service: { sdl: () => offered.subgraphSdl() } };
  // In the offered schema `_service` may belong to a subschema, whose executor answers it by this plan.
  const parts = [
    { schema, fields: service },
    { schema: offered.schema, fields: introspection },
  ].map((part) => {
    const { definition, fragments } = rootPart(prepared, part.fields);
    const definitions = [definition, ...fragments.values()];
    return {
      schema: part.schema,
      rootValue,
      document: { kind: Kind.DOCUMENT, definitions },
    } as const;
  });
  return ({ variables }) => {
    const results = parts.map((part) =>
      execute({ ...part, variableValues: { ...variables.sent } }),
    );
    // These fields are answered from the schema at once.
    return Object.assign({}, ...results.map((result) => (result as ExecutionResult).data));
  };
}
