import process from 'node:process';
import { createTokenKeeper } from 'recruiting-subgraph/tokens';

// Start it as often as you like: all processes share the one refresh token in the store, and any may be killed.
const { TOKEN_ENDPOINT = '', CLIENT_SECRET = '', STORE = '', API = '' } = process.env;
const keeper = await createTokenKeeper({
  endpoint: TOKEN_ENDPOINT,
  client: { id: 'worker', secret: CLIENT_SECRET },
  store: STORE,
});
const stopping = new AbortController();
process.once('SIGTERM', () => stopping.abort());
while (!stopping.signal.aborted) {
  const response = await keeper.fetch(API);
  if (!response.ok) throw new Error(`status ${response.status}: ${await response.text()}`);
  console.log(await response.text());
}
await keeper.close();
