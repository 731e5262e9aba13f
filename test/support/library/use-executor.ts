import process from 'node:process';
import { schemaFromExecutor, wrapSchema } from '@graphql-tools/wrap';
import { createYoga } from 'graphql-yoga';
import { createExecutor } from 'recruiting-subgraph';

// A server of somebody else, which has only its executor from the package.
const { executor, close } = await createExecutor({ settings: process.env });
const schema = wrapSchema({ schema: await schemaFromExecutor(executor), executor });
const yoga = createYoga({ schema });
const answer = await yoga.fetch('http://localhost/graphql', {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ query: '{ persons { items { id } } }' }),
});
process.stdout.write(await answer.text());
await close();
