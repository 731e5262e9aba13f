import process from 'node:process';
import { createGateway } from 'recruiting-subgraph';

// A program that uses the gateway as a library. Its process ends only if the gateway leaves nothing open.
const gateway = await createGateway({ settings: process.env });
const answer = await gateway.fetch('http://localhost/graphql', {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ query: '{ allPersons { id } }' }),
});
process.stdout.write(await answer.text());
await gateway.close();
