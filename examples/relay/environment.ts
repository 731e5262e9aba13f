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
 * An environment that also reads answers in parts, for `@stream_connection`, `@stream` and `@defer`.
 *
 * @param url of the gateway's `/graphql`
 * @param credential the header of the signed-in user, `{ authorization: 'Bearer …' }`, which every request gets
 */
export function createEnvironment(
  url: string,
  credential: () => Record<string, string>,
  send: typeof fetch = fetch,
): Environment {
  const ask: FetchFunction = ({ text }, variables) =>
    Observable.create<GraphQLResponse>((sink) => {
      const controller = new AbortController();
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
        }
        sink.complete();
      };
      read().catch((error: Error) => sink.error(error));
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
    if (data) yield { ...part, data, path, extensions };
    const first = Number(path.at(-1));
    for (const [index, item] of (items ?? []).entries()) {
      yield { ...part, data: item, path: [...path.slice(0, -1), first + index], extensions };
    }
  }
}
