import { createServer } from 'node:http';
import { Pool } from 'undici';

// Does what the bare proxy does at the lowest cost that we found, without promises and streams for each request. No
// gateway on Node costs less.
const [endpoint, token] = process.argv.slice(2);
const { origin, pathname } = new URL(endpoint);
const pool = new Pool(origin, { connections: 16 });
const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` };

const server = createServer((request, response) => {
  const parts = [];
  request.on('data', (part) => parts.push(part));
  request.on('end', () => pass(parts.length === 1 ? parts[0] : Buffer.concat(parts), response));
});

function pass(body, response) {
  const parts = [];
  let status = 0;
  pool.dispatch(
    { path: pathname, method: 'POST', headers, body },
    {
      onRequestStart() {},
      onResponseStart: (_controller, code) => (status = code),
      onResponseData: (_controller, part) => parts.push(part),
      onResponseEnd: () => {
        const answer = parts.length === 1 ? parts[0] : Buffer.concat(parts);
        response.writeHead(status, {
          'content-type': 'application/json',
          'content-length': answer.length,
        });
        response.end(answer);
      },
      onResponseError: () => response.writeHead(502).end(),
    },
  );
}

server.listen(0, '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}/graphql`);
});
