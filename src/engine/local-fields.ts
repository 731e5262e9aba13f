import { execute, Kind, type DocumentNode, type GraphQLSchema } from 'graphql';
import type { Call } from './call.ts';
import type { Shared } from './shared.ts';
import { rootPart, type PreparedOperation } from './prepared-operation.ts';
import { fieldsBelow, selectedNow, type SelectedField } from './selected-fields.ts';

const INTROSPECTION: ReadonlySet<string> = new Set(['__schema', '__type']);

/** Whether the gateway answers a root field without a request, from the schema: introspection and `_service`. */
export function isLocal(field: string): boolean {
  return INTROSPECTION.has(field) || field === '_service';
}

type Values = Readonly<Record<string, unknown>>;

/** Compiles these fields of an operation. @param selected the fields of its root */
export function localFields(
  { schema, subgraphSdl }: Shared['offered'],
  prepared: PreparedOperation,
  selected: readonly SelectedField[],
): (call: Call) => Values {
  const services = selected
    .filter(({ name }) => name === '_service')
    .map((field) => ({ key: field.key, below: fieldsBelow(field, prepared.fragments) }));
  const { definition, fragments } = rootPart(
    prepared,
    selected.filter(({ name }) => INTROSPECTION.has(name)),
  );
  const document: DocumentNode = {
    kind: Kind.DOCUMENT,
    definitions: [definition, ...fragments.values()],
  };
  const isIntrospection = definition.selectionSet.selections.length > 0;
  return ({ variables }) => ({
    ...(isIntrospection && introspect(schema, document, variables.sent)),
    ...Object.fromEntries(
      services.map(({ key, below }) => [key, service(below, variables.values, subgraphSdl)]),
    ),
  });
}

function introspect(schema: GraphQLSchema, document: DocumentNode, sent: Values): Values {
  const result = execute({ schema, document, variableValues: { ...sent } });
  // Fields of introspection are answered from the schema at once.
  return { ...(result as Exclude<typeof result, Promise<unknown>>).data };
}

function service(below: readonly SelectedField[], values: Values, sdl: () => string): Values {
  return Object.fromEntries(
    selectedNow(below, values).map(({ key, name }) => [key, name === 'sdl' ? sdl() : '_Service']),
  );
}
