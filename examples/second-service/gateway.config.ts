import { readFileSync } from 'node:fs';
import process from 'node:process';
import { buildHTTPExecutor } from '@graphql-tools/executor-http';
import { buildSchema } from 'graphql';
import { defineConfig } from 'recruiting-subgraph';

const schema = readFileSync(new URL('reviews.graphql', import.meta.url), 'utf8');

export default defineConfig({
  subschemas: [
    {
      // From a file, so that the gateway also starts while the service is down.
      schema: buildSchema(schema),
      executor: buildHTTPExecutor({
        endpoint: process.env['REVIEWS_URL'] ?? 'http://localhost:4001/graphql',
        // A credential of the gateway: a caller's own never travels to another service.
        headers: () => ({ authorization: `Bearer ${process.env['REVIEWS_TOKEN'] ?? ''}` }),
        timeout: 5_000,
      }),
      merge: {
        Person: {
          selectionSet: '{ id }',
          fieldName: 'reviewedPersons',
          // The persons of one answer are requested together.
          key: ({ id }: { id: string }) => id,
          argsFromKeys: (ids: readonly string[]) => ({ ids }),
        },
      },
    },
  ],
});
