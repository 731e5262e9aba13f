import { readFileSync } from 'node:fs';
import {
  buildClientSchema,
  buildSchema,
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
  return buildSchema(textOf(file), { assumeValidSDL: true });
}

function fromIntrospection(file: string): GraphQLSchema {
  const read = JSON.parse(textOf(file)) as IntrospectionQuery | { data: IntrospectionQuery };
  return buildClientSchema('data' in read ? read.data : read);
}

/** Reads the file, since an `import` of the packages returns code, or nothing. */
function textOf(file: string): string {
  return readFileSync(`bench/node_modules/${file}`, 'utf8');
}
