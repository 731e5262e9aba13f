import { createServer } from 'node:http';
import { buildHTTPExecutor } from '@graphql-tools/executor-http';
import { stitchSchemas } from '@graphql-tools/stitch';
import { schemaFromExecutor } from '@graphql-tools/wrap';
import { parse, print } from 'graphql';
import { createYoga } from 'graphql-yoga';

// A stitched gateway as the documentation of Yoga and GraphQL Tools shows it, with one resolver that loops over
// pages.
const [endpoint, token] = process.argv.slice(2);
const executor = buildHTTPExecutor({ endpoint, headers: { authorization: `Bearer ${token}` } });
const persons = { schema: await schemaFromExecutor(executor), executor };

const schema = stitchSchemas({
  subschemas: [persons],
  typeDefs: 'extend type Query { allPersons: [Person!] }',
  resolvers: { Query: { allPersons } },
});

async function allPersons(_root, _args, _context, { fieldNodes }) {
  const document = parse(`query ($after: String) {
    persons(first: 50, after: $after) {
      items ${print(fieldNodes[0].selectionSet)}
      pageInfo { hasNextPage endCursor }
    }
  }`);
  const all = [];
  let after = null;
  for (;;) {
    const { data } = await executor({ document, variables: { after } });
    all.push(...data.persons.items);
    if (!data.persons.pageInfo.hasNextPage) return all;
    after = data.persons.pageInfo.endCursor;
  }
}

const yoga = createYoga({ schema, graphiql: false, landingPage: false });
const server = createServer((request, response) => void yoga(request, response)).listen(
  0,
  '127.0.0.1',
  () => {
    console.log(`http://127.0.0.1:${server.address().port}/graphql`);
  },
);
