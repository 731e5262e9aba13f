import { Environment, Network, RecordSource, Store, type FetchFunction } from 'relay-runtime';

/**
 * @param url of the gateway's `/graphql`
 * @param credential the header of the signed-in user, `{ authorization: 'Bearer …' }`, which every request gets
 */
export function createEnvironment(
  url: string,
  credential: () => Record<string, string>,
): Environment {
  const send: FetchFunction = async ({ text }, variables) => {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...credential() },
      body: JSON.stringify({ query: text, variables }),
    });
    return response.json();
  };
  return new Environment({
    network: Network.create(send),
    store: new Store(new RecordSource()),
    // Records of two types may have the same id.
    getDataID: ({ id }: { id?: string | null }, type: string) => id && `${type}:${id}`,
  });
}
