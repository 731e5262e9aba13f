import { execute, Kind, type DocumentNode, type GraphQLSchema } from 'graphql';
import type { Call } from './call.ts';
import { forwardedPart, type SentOperation } from './operation.ts';
import { fieldsBelow, selectedNow, type SelectedField } from './selected-fields.ts';

/** The root fields that the gateway answers from its own schema: introspection and `_service`. */
const INTROSPECTION: ReadonlySet<string> = new Set(['__schema', '__type']);

export function isLocal(field: string): boolean {
  return INTROSPECTION.has(field) || field === '_service';
}

type Values = Readonly<Record<string, unknown>>;

/** Compiles these fields of an operation. @param selected the fields of its root */
export function localFields(
  { schema, sdl }: { readonly schema: GraphQLSchema; readonly sdl: () => string },
  sent: SentOperation,
  selected: readonly SelectedField[],
): (call: Call) => Values {
  const services = selected
    .filter(({ name }) => name === '_service')
    .map((field) => ({ key: field.key, below: fieldsBelow(field, sent.fragments) }));
  const { definition, fragments } = forwardedPart(sent, (name) => INTROSPECTION.has(name));
  const document: DocumentNode = {
    kind: Kind.DOCUMENT,
    definitions: [definition, ...fragments.values()],
  };
  const isIntrospection = definition.selectionSet.selections.length > 0;
  return ({ variables }) => ({
    ...(isIntrospection && introspect(schema, document, variables.sent)),
    ...Object.fromEntries(
      services.map(({ key, below }) => [key, service(below, variables.values, sdl)]),
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
