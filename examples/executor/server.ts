import { createServer } from 'node:http';
import process from 'node:process';
import { stitchSchemas } from '@graphql-tools/stitch';
import { schemaFromExecutor } from '@graphql-tools/wrap';
import { createYoga } from 'graphql-yoga';
import { createExecutor } from 'recruiting-subgraph';

// This server is not the gateway: of the package it has only the custody of the tokens. What it serves is its own
// business, here the service's schema and a field of another service.
const { executor, close } = await createExecutor({ settings: process.env });
const schema = stitchSchemas({
  subschemas: [{ schema: await schemaFromExecutor(executor), executor }],
  typeDefs: /* GraphQL */ `
    extend type Query {
      office: String!
    }
  `,
  resolvers: { Query: { office: () => 'Berlin' } },
});

const yoga = createYoga({ schema });

const server = createServer((request, response) => void yoga(request, response));
server.listen(Number(process.env['PORT'] ?? 4000), () => console.log(server.address()));

process.once('SIGTERM', () => void server.close(() => void close()));
