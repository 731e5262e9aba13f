import { readFileSync } from 'node:fs';
import {
  buildClientSchema,
  buildSchema,
  isObjectType,
  versionInfo,
  type GraphQLSchema,
  type IntrospectionQuery,
} from 'graphql';

/** Large schemas that their owners publish on npm under the MIT licence. */
export const publishedSchemas: readonly (readonly [name: string, load: () => GraphQLSchema])[] = [
  ['GitHub', () => fromSdl('@octokit/graphql-schema/schema.graphql')],
  ['Shopify Storefront', () => fromIntrospection('@shopify/hydrogen-react/storefront.schema.json')],
  [
    'Shopify Customer Account',
    () => fromIntrospection('@shopify/hydrogen-react/customer-account.schema.json'),
  ],
];

/** GitHub's schema defines some fields twice, in the same way. */
function fromSdl(file: string): GraphQLSchema {
  return accepted(buildSchema(textOf(file), { assumeValidSDL: true }));
}

function fromIntrospection(file: string): GraphQLSchema {
  const read = JSON.parse(textOf(file)) as IntrospectionQuery | { data: IntrospectionQuery };
  return accepted(buildClientSchema('data' in read ? read.data : read));
}

/** graphql 17 refuses schemas in which a field is deprecated, but not the field of an interface that it implements. */
function accepted(schema: GraphQLSchema): GraphQLSchema {
  if (versionInfo.major < 17) return schema;
  const fields = Object.values(schema.getTypeMap()).flatMap((type) =>
    isObjectType(type) ? Object.values(type.getFields()) : [],
  );
  for (const field of fields) field.deprecationReason = undefined;
  return schema;
}

/** Reads the file, since an `import` of the packages returns code, or nothing. */
function textOf(file: string): string {
  return readFileSync(`bench/node_modules/${file}`, 'utf8');
}
