import { useResponseCache } from '@graphql-yoga/plugin-response-cache';
import {
  OperationTypeNode,
  parse,
  TypeInfo,
  visit,
  visitWithTypeInfo,
  type GraphQLSchema,
} from 'graphql';
import type { Plugin, YogaInitialContext } from 'graphql-yoga';
import { defineConfig } from 'recruiting-subgraph';

/**
 * The fields whose values are the same for all callers, and may be an hour old. An answer is kept only if the operation
 * selects nothing else. So never list a field with data about people, or one that needs a scope of its own: what is not
 * listed is requested each time, also if the service adds it to one of these types.
 */
const KEPT: ReadonlySet<string> = new Set([
  'Query.dictionaries',
  'Dictionary.name',
  'Dictionary.entries',
  'DictionaryEntry.key',
  'DictionaryEntry.label',
]);

function useKeptFields(): Plugin {
  let schema: GraphQLSchema | undefined;
  return {
    onSchemaChange: ({ schema: served }) => void (schema = served),
    onPluginInit: ({ addPlugin }) =>
      addPlugin(
        useResponseCache({
          // All callers share an answer. The gateway still refuses those who may not read.
          session: () => null,
          ttl: 3_600_000,
          enabled: (_request, { params }: YogaInitialContext) =>
            schema !== undefined && params?.query != null && selectsKept(params.query, schema),
        }),
      ),
  };
}

/** Whether an operation is a query of such fields alone. */
function selectsKept(query: string, schema: GraphQLSchema): boolean {
  let isKept = true;
  const types = new TypeInfo(schema);
  try {
    visit(
      parse(query),
      visitWithTypeInfo(types, {
        OperationDefinition: ({ operation }) =>
          void (isKept &&= operation === OperationTypeNode.QUERY),
        Field: ({ name: { value: name } }) => {
          isKept &&= name === '__typename' || KEPT.has(`${types.getParentType()?.name}.${name}`);
        },
      }),
    );
  } catch {
    return false; // The gateway reports that it cannot be parsed.
  }
  return isKept;
}

export default defineConfig({ plugins: [useKeptFields()] });
