import {
  Environment,
  Network,
  RecordSource,
  Store,
  type FetchFunction,
  type GraphQLSingularResponse,
  type PayloadError,
} from 'relay-runtime';

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
    const result = (await response.json()) as GraphQLSingularResponse;
    const { errors = [] } = result as { readonly errors?: readonly PayloadError[] };
    // Relay would take a list that failed for an empty one, and no longer show what it has.
    const failed = errors.find(({ path }) => path?.length === 1);
    if (failed) throw new Error(failed.message, { cause: failed });
    return result;
  };
  return new Environment({
    network: Network.create(send),
    store: new Store(new RecordSource()),
    // Records of two types may have the same id.
    getDataID: ({ id }: { id?: string | null }, type: string) => id && `${type}:${id}`,
  });
}
