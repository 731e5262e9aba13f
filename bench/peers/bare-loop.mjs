import { request } from 'undici';

// The loop that a program without a gateway contains. On a message it reads the whole list, and reports the time.
const [endpoint, token] = process.argv.slice(2);
const query =
  'query ($after: String) { persons(first: 50, after: $after) { items { id firstName } pageInfo { hasNextPage endCursor } } }';
const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` };

process.on('disconnect', () => process.exit());
process.on('message', () => void readAll());
process.send('ready');

async function readAll() {
  const start = performance.now();
  const all = [];
  let after = null;
  for (;;) {
    const body = JSON.stringify({ query, variables: { after } });
    const answer = await request(endpoint, { method: 'POST', headers, body });
    const { items, pageInfo } = JSON.parse(await answer.body.text()).data.persons;
    all.push(...items);
    if (!pageInfo.hasNextPage) break;
    after = pageInfo.endCursor;
  }
  process.send({ ms: performance.now() - start, persons: all.length });
}
