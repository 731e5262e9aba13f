import { meros } from 'meros/browser';
import {
  Environment,
  Network,
  Observable,
  RecordSource,
  Store,
  type FetchFunction,
  type GraphQLResponse,
} from 'relay-runtime';

/**
 * An environment that also reads answers in parts, for `@stream_connection` and `@stream`.
 *
 * @param url of the gateway's `/graphql`
 * @param credential the header of the signed-in user, `{ authorization: 'Bearer …' }`, which every request gets
 * @param onBroken is told of answers that fail behind their first part. Relay itself reports them only to the caller of
 *   `loadNext`; of a first load it shows what has arrived, as if it were all.
 */
export function createEnvironment(
  url: string,
  credential: () => Record<string, string>,
  onBroken: (error: Error) => void,
  send: typeof fetch = fetch,
): Environment {
  const ask: FetchFunction = ({ text }, variables) =>
    Observable.create<GraphQLResponse>((sink) => {
      const controller = new AbortController();
      let hasBegun = false;
      const read = async () => {
        const response = await send(url, {
          method: 'POST',
          headers: {
            accept: 'multipart/mixed;deferSpec=20220824, application/json',
            'content-type': 'application/json',
            ...credential(),
          },
          body: JSON.stringify({ query: text, variables }),
          signal: controller.signal,
        });
        for await (const payload of payloadsOf(response)) {
          for (const item of itemsOf(payload)) sink.next(item as GraphQLResponse);
          hasBegun = true;
        }
        sink.complete();
      };
      read().catch((error: Error) => {
        if (hasBegun && !controller.signal.aborted) onBroken(error);
        sink.error(error);
      });
      return () => controller.abort();
    });
  return new Environment({ network: Network.create(ask), store: new Store(new RecordSource()) });
}

interface Payload {
  readonly data?: unknown;
  readonly incremental?: readonly {
    readonly path: readonly (string | number)[];
    readonly data?: unknown;
    readonly items?: readonly unknown[] | null;
    readonly errors?: readonly { readonly message: string }[];
  }[];
  readonly hasNext?: boolean;
}

async function* payloadsOf(response: Response): AsyncGenerator<Payload> {
  const parts = await meros<Payload>(response);
  if (parts instanceof Response) return yield (await parts.json()) as Payload;
  let isWhole = false;
  for await (const { body } of parts) {
    yield body as Payload;
    isWhole = (body as Payload).hasNext !== true;
  }
  // A proxy can end an answer so that it looks complete.
  if (!isWhole) throw new Error('The answer ended before its last part.');
}

/** Relay takes one item of a list at a time, and calls its parts `data`. */
function* itemsOf({ incremental = [], hasNext = false, ...whole }: Payload): Generator<object> {
  const extensions = { is_final: !hasNext };
  if ('data' in whole || 'errors' in whole) yield { ...whole, extensions };
  for (const { items, data, path, ...part } of incremental) {
    // Relay has no way to say that a part failed.
    if (data === null || items === null) throw new Error(part.errors?.[0]?.message);
    if (data) yield { ...part, data, path, extensions };
    const first = Number(path.at(-1));
    for (const [index, item] of (items ?? []).entries()) {
      yield { ...part, data: item, path: [...path.slice(0, -1), first + index], extensions };
    }
  }
}
